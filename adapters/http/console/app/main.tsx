import { render } from 'preact';
import { start } from './shell/identities.ts';
import { Shell } from './shell/shell.tsx';
import './styles/console.css';

const root = document.getElementById('console');
if (root !== null) {
  await start();
  root.replaceChildren();
  render(<Shell />, root);
}
