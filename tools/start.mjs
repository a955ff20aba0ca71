/**
 * `npm start`: checks Node and the packages, builds `dist` if a source has changed, and runs the service. In package.json a POSIX shell
 * replaces itself by this program (`exec`), so that npm signals the service and waits for its end. The shell of Windows has no `exec` and
 * runs `exec.cmd` in the root, which runs its arguments.
 */
import '../bootstrap/check-node.mjs';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startService } from '../bootstrap/commands/start-service.mjs';

// The build runs in a separate process, because the bundler leaves a child process behind.
const program = execFileSync(process.execPath, [fileURLToPath(new URL('./program.mjs', import.meta.url))], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
}).trim();
startService(process.execPath, program, process.argv.slice(2));
