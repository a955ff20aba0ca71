import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort } from 'node:worker_threads';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { partsOf, type ThreadRequest, type ThreadResponse } from '../../adapters/trust-lists/thread-protocol.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import { openTrustList } from '../../application/trust-lists/open-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

/** The thread of `adapters/trust-lists/list-thread.ts`: it opens one list after the other, and passes each on in parts. */
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates(), xmlTrustedListReader: new XmlTrustedLists() };
const send = (response: ThreadResponse) => parentPort?.postMessage(response);
let parts: ReturnType<typeof partsOf> | undefined;

function processorTime(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function open({ bytes, signers, now }: Exclude<ThreadRequest, 'next'>): void {
  const before = processorTime();
  size = bytes.length;
  try {
    const anchors = signers === 'shown' ? signers : signers.map((certificate) => ({ certificate }));
    const { list, ...opened } = openTrustList(ports, bytes, { signers: anchors, now });
    const { entities, ...about } = list;
    parts = partsOf(entities);
    send({ opened: { ...opened, list: about }, cpuMs: processorTime() - before });
  } catch (error) {
    if (!(error instanceof TrustListRefusal)) throw error;
    send({ fault: error.fault, detail: error.detail, cpuMs: processorTime() - before });
    release();
  }
}

function sendNext(): void {
  const next = parts?.next();
  if (next?.done === false) send({ part: next.value });
  else {
    send({ isComplete: true });
    release();
  }
}

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as Collect;
setFlagsFromString('--no-expose-gc');

/** Bytes of a list from which on its memory goes back as soon as it was read: the heap would stay as large as it may become. */
const LARGE_BYTES = 128 * 1024;
let size = 0;

function release(): void {
  parts = undefined;
  if (size >= LARGE_BYTES) collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

parentPort?.on('message', (request: ThreadRequest) => {
  if (request === 'next') sendNext();
  else open(request);
});
