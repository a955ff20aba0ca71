/**
 * Starts the service. The version of Node is checked before any import: on an older Node a native module would end the process without
 * a message.
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 7)) {
  console.error(`Vidimus requires Node 24.7 or newer and was started with ${process.version}. Use "npm start".`);
  process.exit(1);
}
const { run } = await import('./run.ts');
await run();

export {};
