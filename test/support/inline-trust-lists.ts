import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import { InlineTrustLists } from '../../application/trust-lists/open-list.ts';

/** Opens trust lists of either format in the thread of the test. */
export function inlineTrustLists(): InlineTrustLists {
  return new InlineTrustLists({
    signatures: new NodeSignatures(),
    certificates: new NodeCertificates(),
    xmlTrustedListReader: new XmlTrustedLists(),
  });
}
