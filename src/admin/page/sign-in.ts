import { ApiError, ask, saveToken } from './api.js';
import { h, setText } from './dom.js';

/** @param onSignedIn the token is right, and saved */
export function createSignIn(onSignedIn: () => void): { readonly element: HTMLElement; focus(): void } {
  const token = h('input', {
    id: 'token',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
    attributes: { 'aria-describedby': 'sign-in-hint sign-in-error' },
  });
  const problem = h('p', { id: 'sign-in-error', class: 'problem', attributes: { role: 'alert' } });
  const button = h('button', { type: 'submit', class: 'button primary' }, 'Sign in');
  const submit = async (): Promise<void> => {
    button.disabled = true;
    setText(problem, '');
    try {
      await ask('/status', { token: token.value });
      saveToken(token.value);
      onSignedIn();
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401;
      setText(problem, isWrong ? 'This is not the admin token.' : (error as Error).message);
      token.select();
    } finally {
      button.disabled = false;
    }
  };
  const element = h(
    'main',
    { class: 'sign-in' },
    h(
      'form',
      {
        class: 'panel',
        on: {
          submit: (event: SubmitEvent) => {
            event.preventDefault();
            void submit();
          },
        },
      },
      h('h1', {}, 'Model gateway'),
      h('label', { class: 'field' }, h('span', {}, 'Admin token'), token),
      h(
        'p',
        { id: 'sign-in-hint', class: 'hint' },
        'It is the config’s admin.token; the demo prints it when it starts.',
      ),
      problem,
      button,
    ),
  );
  return { element, focus: () => token.focus() };
}
