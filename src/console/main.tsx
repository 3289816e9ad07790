import { signal } from '@preact/signals';
import { render } from 'preact';
import { forgetToken, savedToken, signedOut } from './api.js';
import { type Session, SessionContext, startSession } from './session.js';
import { Shell } from './shell.js';
import { SignIn } from './sign-in.js';
import { startTheme } from './theme.js';

const session = signal<Session | null>(null);

function signIn(): void {
  session.value = startSession();
}

function signOut(): void {
  session.value?.end();
  session.value = null;
  forgetToken();
}

function App() {
  if (session.value === null) return <SignIn onSignedIn={signIn} />;
  return (
    <SessionContext.Provider value={session.value}>
      <Shell onSignOut={signOut} />
    </SessionContext.Provider>
  );
}

startTheme();
if (savedToken() !== null) signIn();
signedOut.addEventListener('signed-out', signOut);
render(<App />, document.body);
