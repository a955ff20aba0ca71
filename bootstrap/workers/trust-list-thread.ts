import { parentPort } from 'node:worker_threads';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import {
  partsOf,
  type ThreadRequest,
  type ThreadResponse,
} from '../../adapters/trust-lists/thread-protocol.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import { openTrustList } from '../../application/trust-lists/open-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

/** The thread of `adapters/trust-lists/list-thread.ts`: it opens one list after the other, and passes each on in parts. */
const ports = {
  signatures: new NodeSignatures(),
  certificates: new NodeCertificates(),
  xmlTrustedListReader: new XmlTrustedLists(),
};
const send = (response: ThreadResponse) => parentPort?.postMessage(response);
let parts: ReturnType<typeof partsOf> | undefined;

function processorTime(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function open({ bytes, signers, now }: Exclude<ThreadRequest, 'next'>): void {
  const before = processorTime();
  try {
    const anchors = signers === 'shown' ? signers : signers.map((certificate) => ({ certificate }));
    const { list, ...opened } = openTrustList(ports, bytes, { signers: anchors, now });
    const { entities, ...about } = list;
    parts = partsOf(entities);
    send({ opened: { ...opened, list: about }, cpuMs: processorTime() - before });
  } catch (error) {
    if (!(error instanceof TrustListRefusal)) throw error;
    send({ fault: error.fault, detail: error.detail, cpuMs: processorTime() - before });
  }
}

function sendNext(): void {
  const next = parts?.next();
  if (next?.done === false) send({ part: next.value });
  else send({ isComplete: true });
}

parentPort?.on('message', (request: ThreadRequest) => {
  if (request === 'next') sendNext();
  else open(request);
});
