import { parentPort, workerData } from 'node:worker_threads';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { XmlCryptoDocuments } from './signed-xml-documents.ts';
import type { ReadingAnswer, ReadingTask } from './threaded-xml-documents.ts';

/** What a thread runs: it reads one document, says what it found, and ends. */
const { text, signers, now, limits } = workerData as ReadingTask;

async function read(): Promise<ReadingAnswer> {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  try {
    return { opened: await new XmlCryptoDocuments(limits).trustedList(bytes, signers, now) };
  } catch (error) {
    if (!(error instanceof TrustListRefusal)) throw error;
    return { fault: error.fault, detail: error.detail };
  }
}

parentPort?.postMessage(await read());
