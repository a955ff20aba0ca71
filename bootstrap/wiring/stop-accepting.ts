import { Server } from 'node:net';

/** Clients that connect without a pause do not prevent the service from stopping. */
const LIMIT_MS = 500;

/**
 * Stops listening. The system resets established connections that the process has not accepted, so those are accepted first. One
 * connection arrives per turn of the event loop, and after a turn without one the port is closed. Existing connections remain open.
 */
export async function stopAccepting(server: Server): Promise<void> {
  let hasNewConnection = true;
  const onConnection = () => {
    hasNewConnection = true;
  };
  server.on('connection', onConnection).on('drop', onConnection);
  const deadline = performance.now() + LIMIT_MS;
  // The first turn may end the current round of events, which looked for connections before this call.
  await nextTurn();
  while (hasNewConnection && performance.now() < deadline) {
    hasNewConnection = false;
    await nextTurn();
  }
  server.off('connection', onConnection).off('drop', onConnection);
  // `close` of an HTTP server is not used, because it ends connections between two requests at once.
  Server.prototype.close.call(server);
}

function nextTurn(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
