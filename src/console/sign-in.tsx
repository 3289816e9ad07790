import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError, ask, saveToken } from './api.js';
import { messageOf } from './words.js';

/** Prompts for the admin token. @param onSignedIn called when the token is valid and saved */
export function SignIn({ onSignedIn }: { readonly onSignedIn: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const problem = useSignal('');
  const isBusy = useSignal(false);
  useEffect(() => input.current?.focus(), []);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const token = input.current?.value ?? '';
    isBusy.value = true;
    problem.value = '';
    try {
      await ask('/status', { token });
      saveToken(token);
      onSignedIn();
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401;
      problem.value = isWrong ? 'This is not an admin token.' : messageOf(error);
      input.current?.select();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <main class="sign-in">
      <form class="panel" onSubmit={submit}>
        <h1>Model gateway</h1>
        <label class="field">
          <span>Admin token</span>
          <input
            ref={input}
            id="token"
            type="password"
            autocomplete="current-password"
            required
            aria-describedby="sign-in-hint sign-in-error"
          />
        </label>
        <p id="sign-in-hint" class="hint">
          It is the config’s admin.token, or readToken to look only; the demo prints it when it starts.
        </p>
        <p id="sign-in-error" class="problem" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
