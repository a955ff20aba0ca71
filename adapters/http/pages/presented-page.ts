import { page } from './page.ts';

/** What a person sees whose wallet has answered. It says nothing of who they are, what was asked for, or how it went. */
export function presentedPage(): string {
  return page(
    'Your wallet has answered',
    `<h1>Your wallet has answered</h1>
<p>Go back to where you came from: the page, the app or the device that asked you. It knows how it goes on.</p>
<p>You may close this window.</p>`,
  );
}
