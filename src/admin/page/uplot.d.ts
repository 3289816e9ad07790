// The browser takes it from the admin listener, which serves the file of the package under this name.
export { default } from 'uplot';
