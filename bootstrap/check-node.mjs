/**
 * Runs before the service, in plain JavaScript: otherwise an older Node, or a Node without the packages, could not report the problem.
 */
import { existsSync } from 'node:fs';

const [major, minor] = process.versions.node.split('.').map(Number);
const isOld = major < 24 || (major === 24 && minor < 7);
if (isOld || !existsSync(new URL('../node_modules/inversify', import.meta.url))) {
  console.error(
    `Vidimus requires its packages, which include the Node that it runs on (24.7 or newer; this is ${process.version}).\n` +
      'Run "npm ci" first, then start through npm: "npm start", "npm run demo".',
  );
  process.exit(1);
}
