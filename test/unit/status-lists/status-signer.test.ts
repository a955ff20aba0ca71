import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { StatusChecker, type StatusQuestion } from '../../../application/status-lists/check-status.ts';
import type { RemoteStatusList } from '../../../application/status-lists/remote-status-lists.ts';
import type { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import {
  type CertificateOptions,
  type Certified,
  certify,
  DOCUMENT_SIGNER,
  WEB_SERVER,
} from '../../support/test-certificates.ts';
import { SetClock } from '../verification-flow/kit.ts';

const URI = 'https://issuer.example/lists/1';

describe('The signer of a status list', () => {
  const clock = new SetClock();
  const certificates = new NodeCertificates();
  let root: Certified;
  let otherRoot: Certified;
  let middle: Certified;
  let former: Certified;

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    otherRoot = await certify({ name: 'Other root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true });
    former = await certify({ name: 'DS 1, O=Issuer, C=DE', by: root, ...DOCUMENT_SIGNER });
  });

  const check = async (
    chain: readonly Certified[],
    changes: Partial<StatusQuestion> = {},
    credential = former,
  ): Promise<string> => {
    const signer = chain.map(({ certificate }) => certificate);
    const list = { uri: URI, bits: 1, bytes: Buffer.alloc(2), signer, fetchedAt: clock.now() };
    const checker = new StatusChecker({
      remoteStatusLists: { get: async () => list as unknown as RemoteStatusList } as never,
      ownStatusLists: {} as never,
      certificates,
      clock,
      settings: { publicUrl: 'https://vidimus.example' } as never,
      tenantConfigurations: {} as never,
    });
    const anchors = [root, otherRoot].map(({ certificate }) => ({ certificate }));
    const purpose = changes.purpose ?? 'mdoc';
    const issuer = certificates.validate([credential.certificate], anchors, clock.now(), { purpose });
    if (!issuer.trusted) throw new Error(issuer.detail);
    try {
      await checker.check({
        configured: { tenantId: 'acme' } as TenantConfiguration,
        reference: { idx: 1, uri: URI },
        chain: [credential.certificate],
        issuer,
        anchors,
        purpose,
        ...changes,
      });
      return 'accepted';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };
  const signer = (changes: Partial<CertificateOptions> = {}) =>
    certify({ name: 'DS 2, O=Issuer, C=DE', by: root, ...DOCUMENT_SIGNER, ...changes });

  for (const purpose of ['mdoc', 'SD-JWT VC'] as const) {
    describe(`of a credential in the format ${purpose}`, () => {
      it('may be the next document signer of the issuer', async () => {
        expect(await check([await signer()], { purpose })).to.equal('accepted');
      });

      it('may be the next document signer where the trust list names a revocation service under the same anchor', async () => {
        const revocation = [{ certificate: root.certificate }];
        expect(await check([await signer()], { purpose, revocation })).to.equal('accepted');
        const other = [{ certificate: otherRoot.certificate }];
        expect(await check([await signer()], { purpose, revocation: other })).to.match(/^status_invalid/);
      });

      const rejected: Record<string, () => Promise<readonly Certified[]>> = {
        'of another organization': async () => [await signer({ name: 'DS 2, O=Other, C=DE' })],
        'of another country': async () => [await signer({ name: 'DS 2, O=Issuer, C=FR' })],
        'of an issuer without organization': async () => [await signer({ name: 'DS 2' })],
        'that an authority below the anchor certified': async () => [await signer({ by: middle }), middle],
        'under another anchor': async () => [await signer({ by: otherRoot })],
        'with the extended key usage of a web server': async () => [await signer({ purposes: [WEB_SERVER] })],
        'with an expired certificate': async () => [await signer({ until: '2025-06-01T00:00:00Z' })],
      };
      for (const [what, chain] of Object.entries(rejected)) {
        it(`is not one ${what}`, async () => {
          expect(await check(await chain(), { purpose })).to.match(/^status_invalid/);
        });
      }

      it('has a host name of the earlier one, if that has any', async () => {
        const dns = ['issuer.example'];
        const credential = await certify({ name: 'DS 1', by: root, dns, ...DOCUMENT_SIGNER });
        const next = (names: readonly string[]) => signer({ name: 'DS 2', dns: names });
        expect(await check([await next(dns)], { purpose }, credential)).to.equal('accepted');
        const other = await check([await next(['other.example'])], { purpose }, credential);
        expect(other).to.match(/^status_invalid/);
      });
    });
  }

  it('has its revocation checked if it is not the signer of the credential', async () => {
    const checked: string[] = [];
    const next = await signer();
    const checkSigner = async ([certificate = '']: readonly string[]) => checked.push(certificate);
    await check([next], { checkSigner });
    expect(checked).to.deep.equal([next.certificate]);
  });
});
