import { jsonAnswer, type RawRequest } from '../support/upstream.js';

/** What an upstream of audio does with a request: it answers a transcription with the text `heard`. */
export const hears = ({ socket }: RawRequest): void => void socket.write(heard);

const heard = jsonAnswer(200, '{"text":"heard"}');
