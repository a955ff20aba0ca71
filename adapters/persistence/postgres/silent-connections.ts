/** Of a connection and of the pool, what the driver for PostgreSQL has and its types do not show. */
type Stream = {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  setTimeout(milliseconds: number): unknown;
  on(event: 'timeout', listener: () => void): unknown;
  destroy(error: Error): unknown;
};
type Pool = {
  on(event: 'connect', listener: (client: { readonly connection: { readonly stream: Stream } }) => void): unknown;
};

/**
 * Ends connections to PostgreSQL on which nothing has come or gone for so long. When a network or something in it forgets a connection
 * without a word, nobody closes it: the driver would wait for its answer for ever, the pool would never get its place back, and the service
 * would be down until it is started anew. The driver's own `query_timeout` answers the caller and leaves the connection as it is, good for
 * nothing and in use again (node-postgres issue 3399), so that is not used.
 *
 * The time is that of the socket, not of single calls, so it holds for all that goes over a connection: statements of wallet paths, of
 * units of work, `begin` and `commit`, and the farewell of a connection that nobody needs any more. PostgreSQL is told to give up a
 * statement earlier than that (`statement_timeout`), and says so, hence silence means that nobody is there. What became of the last
 * statement is then unknown: it may have been committed.
 */
export function endSilentConnections(pool: Pool, milliseconds: number): void {
  pool.on('connect', ({ connection: { stream } }) => {
    stream.setTimeout(milliseconds);
    stream.on('timeout', () => {
      const { bytesRead, bytesWritten } = stream;
      // When this process was the one that stood still, the answer is there and is read before this runs.
      setImmediate(() => {
        if (stream.bytesRead !== bytesRead || stream.bytesWritten !== bytesWritten) return;
        const error = new Error(`the database has said nothing for ${milliseconds / 1000} s`);
        stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
      });
    });
  });
}
