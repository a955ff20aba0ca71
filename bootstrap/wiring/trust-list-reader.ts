import { ThreadedTrustLists } from '../../adapters/trust-lists/threaded-trust-lists.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import type { Certificates } from '../../application/ports/certificates.ts';
import type { Signatures } from '../../application/ports/signatures.ts';
import { InlineTrustLists } from '../../application/trust-lists/open-list.ts';

/** Beside the sources and in what is built from them. */
const PROGRAM = new URL(`../workers/trust-list-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };
type Options = Partial<Omit<ConstructorParameters<typeof ThreadedTrustLists>[0], 'inline'>>;

/** Opens small lists at once, and others in a thread. */
export function threadedTrustLists(ports: Ports, options: Options = {}): ThreadedTrustLists {
  const inline = new InlineTrustLists({ ...ports, xmlTrustedListReader: new XmlTrustedLists() });
  return new ThreadedTrustLists({ program: PROGRAM, ...options, inline });
}
