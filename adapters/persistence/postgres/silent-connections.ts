/** Parts of the driver's connection and pool that its types do not show. */
type Stream = {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  setTimeout(milliseconds: number): unknown;
  on(event: 'timeout', listener: () => void): unknown;
  destroy(error: Error): unknown;
};
type Pool = { on(event: 'connect', listener: (client: { readonly connection: { readonly stream: Stream } }) => void): unknown };

/**
 * Closes connections to PostgreSQL on which nothing was sent or received for this long. If a network forgets a connection, neither end
 * closes it: the driver would wait for ever, the pool would never get its slot back, and the service would be down until a restart. The
 * driver's own `query_timeout` fails the caller and leaves the broken connection in use (node-postgres issue 3399), so it is not used.
 *
 * The time is that of the socket, not of single calls, so it covers everything on a connection: statements of wallet paths and units of
 * work, `begin` and `commit`, and the termination of an idle connection. PostgreSQL aborts a statement earlier (`statement_timeout`) and
 * reports it, so silence means a dead peer. The outcome of the last statement is then unknown: it may have been committed.
 */
export function endSilentConnections(pool: Pool, milliseconds: number): void {
  pool.on('connect', ({ connection: { stream } }) => {
    stream.setTimeout(milliseconds);
    stream.on('timeout', () => {
      const { bytesRead, bytesWritten } = stream;
      // If this process itself was stalled, the answer has arrived and is read before this runs.
      setImmediate(() => {
        if (stream.bytesRead !== bytesRead || stream.bytesWritten !== bytesWritten) return;
        const error = new Error(`the database has not answered for ${milliseconds / 1000} s`);
        stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
      });
    });
  });
}
