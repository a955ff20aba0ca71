import { parentPort, workerData } from 'node:worker_threads';
import { sqliteDriver } from '../drivers.ts';
import { type CheckpointReply, type CheckpointRequest, type CheckpointThreadData, filesOf, isSameFiles } from './checkpoint-protocol.ts';

/** Thread of `checkpoints.ts`: it writes the write-ahead log back to the database file, with a connection of its own. */
const { file, files } = workerData as CheckpointThreadData;
const Connection = sqliteDriver();
const connection = new Connection(file, { fileMustExist: true });

// Opening reads nothing. A log that is applied to another file would destroy it, so this comes before the first statement.
if (!isSameFiles(filesOf(file), files)) {
  connection.close();
  throw new Error(`${file} or its write-ahead log is another file than the service has open`);
}
// Same setting as on the committing connection: the log is synced before its pages are in the file, and the file before the log restarts.
connection.pragma('synchronous = full');
const checkpoint = connection.prepare('pragma wal_checkpoint(passive)');

parentPort?.on('message', (request: CheckpointRequest) => {
  if (request === 'checkpoint') {
    checkpoint.all();
    const reply: CheckpointReply = 'done';
    parentPort?.postMessage(reply);
    return;
  }
  connection.close();
  parentPort?.close();
});
