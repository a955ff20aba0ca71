import { ThreadedTrustLists } from '../../adapters/trust-lists/threaded-trust-lists.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import type { Certificates } from '../../application/ports/certificates.ts';
import type { Signatures } from '../../application/ports/signatures.ts';
import { InlineTrustLists } from '../../application/trust-lists/open-list.ts';

/** The program of the thread, in the sources or in the build. */
const PROGRAM = new URL(`../workers/trust-list-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };
type Options = Partial<Omit<ConstructorParameters<typeof ThreadedTrustLists>[0], 'inline'>>;

/** Opens small lists in the main thread, and other lists in a separate thread. */
export function threadedTrustLists(ports: Ports, options: Options = {}): ThreadedTrustLists {
  const inline = new InlineTrustLists({ ...ports, xmlTrustedListReader: new XmlTrustedLists() });
  return new ThreadedTrustLists({ program: PROGRAM, ...options, inline });
}
