import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort } from 'node:worker_threads';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { partsOf, type ThreadRequest, type ThreadResponse } from '../../adapters/trust-lists/thread-protocol.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import { openTrustList } from '../../application/trust-lists/open-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

/** The thread of `adapters/trust-lists/list-thread.ts`. It opens lists in turn, and passes each of them on in parts. */
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates(), xmlTrustedListReader: new XmlTrustedLists() };
const send = (response: ThreadResponse) => parentPort?.postMessage(response);
let parts: ReturnType<typeof partsOf> | undefined;

function processorTime(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function openList({ bytes, signers, now }: Exclude<ThreadRequest, 'next'>): void {
  const startMs = processorTime();
  size = bytes.length;
  try {
    const anchors = signers === 'shown' ? signers : signers.map((certificate) => ({ certificate }));
    const { list, ...openedList } = openTrustList(ports, bytes, { signers: anchors, now });
    const { entities, ...listHead } = list;
    parts = partsOf(entities);
    send({ opened: { ...openedList, list: listHead }, cpuMs: processorTime() - startMs });
  } catch (error) {
    if (!(error instanceof TrustListRefusal)) throw error;
    send({ fault: error.fault, detail: error.detail, cpuMs: processorTime() - startMs });
    release();
  }
}

function sendNext(): void {
  const nextPart = parts?.next();
  if (nextPart?.done === false) send({ part: nextPart.value });
  else {
    send({ isComplete: true });
    release();
  }
}

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as Collect;
setFlagsFromString('--no-expose-gc');

/** The memory of a list of at least this many bytes is released at once: otherwise the heap would keep its largest size. */
const LARGE_BYTES = 128 * 1024;
let size = 0;

function release(): void {
  parts = undefined;
  if (size >= LARGE_BYTES) collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

parentPort?.on('message', (request: ThreadRequest) => {
  if (request === 'next') sendNext();
  else openList(request);
});
