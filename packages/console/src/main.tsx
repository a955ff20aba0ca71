import { render } from 'preact';
import { start } from './shell/identities.ts';
import { keepFocus } from './shell/keep-focus.ts';
import './shell/shared.ts';
import { Shell } from './shell/shell.tsx';
import './styles/console.css';

const root = document.getElementById('console');
if (root !== null) {
  keepFocus();
  await start();
  root.replaceChildren();
  render(<Shell />, root);
}
