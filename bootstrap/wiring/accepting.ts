import { Server } from 'node:net';

/** Who connects without a pause does not keep the service from stopping. */
const LIMIT_MS = 500;

/**
 * Stops listening. The system resets connections that it made and nobody took from it, so those are taken first: one
 * comes in each turn of the event loop, and after a turn without one the port is closed. Connections live on.
 */
export async function stopAccepting(server: Server): Promise<void> {
  let isComing = true;
  const note = () => {
    isComing = true;
  };
  server.on('connection', note).on('drop', note);
  const deadline = performance.now() + LIMIT_MS;
  // The first turn may end the round of events that this was called in, which looked for connections before.
  await turn();
  while (isComing && performance.now() < deadline) {
    isComing = false;
    await turn();
  }
  server.off('connection', note).off('drop', note);
  // Not the `close` of an HTTP server, which cuts connections between two requests at once.
  Server.prototype.close.call(server);
}

function turn(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
