import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { thumbprintOf } from '../../../application/trust-lists/verify-trust-list.ts';
import { issuedAt } from '../../../application/verification/issued-in-time.ts';
import { type Opening, openPresentation } from '../../../application/verification/open-presentation.ts';
import { redirectTranscript } from '../../../domain/formats/mdoc/session-transcript.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import type { Period } from '../../../domain/trust-lists/service-history.ts';
import type { CompiledCredentialQuery } from '../../../domain/verification/dcql/compile.ts';
import { presentMdoc } from '../../support/mdoc-maker.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const TYPE = 'org.example.badge';
const HOUR = 3_600_000;

describe('The time of issuance', () => {
  const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };
  let root: Certified;
  let signer: Certified;

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    signer = await certify({ name: 'Signer', by: root });
  });

  /** Of an mdoc that was signed a day ago, where its service stood as it has to in these periods, hours ago. */
  const opened = (periods: readonly (readonly [from: number, until: number])[] | undefined) => {
    const transcript = redirectTranscript({
      ...{ clientId: 'x509_hash:abc', nonce: 'n', encryptionKey: undefined },
      responseUri: 'https://verifier.example/response',
    });
    const ago = (hours: number) => new Date(NOW.getTime() - hours * HOUR);
    const dated = new Map<string, readonly Period[]>(
      periods === undefined
        ? []
        : [
            [
              thumbprintOf(root.certificate),
              periods.map(([from, until]) => ({ from: ago(from), until: ago(until) })),
            ],
          ],
    );
    const withFormer = [{ certificate: root.certificate }];
    const opening = {
      ...{ request: { nonce: 'n' }, haip: false, now: NOW, requestedAt: NOW, mdlProfile: undefined },
      trust: { ...{ anchors: [], withFormer, dated, listed: new Map(), lists: [], missing: [] } },
      binding: { transcripts: () => [transcript] },
    } as unknown as Opening;
    const query = { id: 'q', format: 'mso_mdoc', types: new Set([TYPE]), holderBindingRequired: true };
    const text = presentMdoc({
      ...{ holder: newKey(), docType: TYPE, elements: { [TYPE]: { name: 'Ada' } }, transcript },
      issuer: { key: signer as never, chain: [signer.certificate] },
      now: NOW.getTime() / 1000,
    });
    try {
      openPresentation(ports, opening, query as unknown as CompiledCredentialQuery, text);
      return 'accepted';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };

  it('of an mdoc is when it was signed', () => {
    expect(opened([[48, 12]])).to.equal('accepted');
    expect(opened([[24, 23]]), 'from the beginning of a period').to.equal('accepted');
    expect(opened(undefined), 'where no time counts').to.equal('accepted');
  });
  it('of an mdoc outside of all periods lets nobody vouch for it', () => {
    const refused = /^untrusted_chain: the service of its issuer was not approved when it was issued/;
    for (const periods of [[[48, 24]], [[23, 0]], []] as [number, number][][]) {
      expect(opened(periods), JSON.stringify(periods)).to.match(refused);
    }
  });
  it('of an SD-JWT VC is its iat, where that is one', () => {
    expect(issuedAt({ iat: 1_700_000_000 })).to.deep.equal(new Date('2023-11-14T22:13:20Z'));
    for (const iat of ['1700000000', null, Number.NaN, 1e18, undefined])
      expect(issuedAt({ iat } as never), String(iat)).to.equal(undefined);
  });
});
