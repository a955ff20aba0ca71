import { expect } from 'chai';
import fc from 'fast-check';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { coseAlgorithm } from '../../../domain/formats/cose/algorithms.ts';
import { readCoseKey } from '../../../domain/formats/cose/key.ts';
import { sigStructure } from '../../../domain/formats/cose/sign1.ts';
import {
  checkDocumentSigner,
  MDL_DOCUMENT_SIGNER,
  readDocumentSigner,
} from '../../../domain/formats/mdoc/document-signer.ts';
import { checkValidity } from '../../../domain/formats/mdoc/mso.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { readIssuerSigned } from '../../support/issuer-signed.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { aFactory, anMdoc, aView, ISSUER, MDL, MDL_NAMESPACE } from './kit.ts';
import { someClaims } from './random-claims.ts';

const NAMESPACE = 'org.example.badge.1';
const BADGE = { docType: 'org.example.badge', namespace: NAMESPACE };

describe('Making an mdoc', () => {
  let world: Awaited<ReturnType<typeof aFactory>>;
  before(async () => {
    world = await aFactory();
  });

  const failureOf = async (work: Promise<unknown>) => {
    const outcome = await work.catch((error: unknown) => error);
    expect(outcome).to.be.instanceOf(Failure);
    return outcome as Failure;
  };

  const read = (text: string, docType = BADGE.docType) => readIssuerSigned(text, docType);

  it('keeps whatever was claimed', async () => {
    await fc.assert(
      fc.asyncProperty(someClaims, async (claims) => {
        const { elements } = read(await world.make(anMdoc(BADGE), claims));
        expect(elements).to.deep.equal({ [NAMESPACE]: claims });
      }),
      { numRuns: 50 },
    );
  });

  it('binds it to the device, without padding, dated in whole hours and without fractions (N145)', async () => {
    const holder = newKey();
    const status = { idx: 7, uri: `${ISSUER}/status-list/1` };
    const instance = { holderKey: holder.jwk as never, status };
    const [text = ''] = await world.factory.make(
      aView(world.chain),
      anMdoc(BADGE, { lifeTime: 7200 }),
      { name: 'Ada' },
      [instance],
    );
    expect(text).to.match(/^[A-Za-z0-9_-]+$/);
    const { mso, opened } = read(text);
    expect(mso.docType).to.equal(BADGE.docType);
    expect(readCoseKey(mso.deviceKey)).to.deep.equal(holder.jwk);
    expect(mso.status).to.deep.equal(
      new Map([['status_list', new Map<string, unknown>(Object.entries(status))]]),
    );
    const { signed, validFrom, validUntil } = mso.validity;
    expect([signed, validFrom, validUntil].map((time) => time.toISOString())).to.deep.equal([
      '2026-06-01T12:00:00.000Z',
      '2026-06-01T12:00:00.000Z',
      '2026-06-01T14:00:00.000Z',
    ]);
    // ISO/IEC 18013-5 section 9.1.2.4: tdate without fractions, in UTC
    const payload = (opened.issuerAuth.payload ?? Buffer.alloc(0)).toString('latin1');
    expect(payload.match(/\d{4}-\d\d-\d\dT[\d:.]+[^\d:.]/g)).to.have.length(3);
    expect(payload).to.not.match(/T\d\d:\d\d:\d\d(\.|\+)/);
  });

  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`is signed with ${algorithm} by a document signer under the chain's own authority`, async () => {
      const { make, chain, clock } = await aFactory(algorithm);
      const { opened, mso, chain: certificates } = read(await make(anMdoc(), { family_name: 'Nygård' }), MDL);
      const { issuerAuth } = opened;
      expect([...issuerAuth.protectedHeader]).to.deep.equal([[1, coseAlgorithm(algorithm)]]);
      expect([...issuerAuth.unprotectedHeader.keys()]).to.deep.equal([33]);
      const toVerify = sigStructure(issuerAuth.protectedBytes, issuerAuth.payload ?? Buffer.alloc(0));
      const [leaf = ''] = certificates;
      const anchors = [{ certificate: chain.root?.certificate ?? '' }];
      const verdict = new NodeCertificates().validate(certificates, anchors, clock.now(), {
        purpose: 'mdoc',
        haip: true,
      });
      expect(verdict.trusted && new NodeSignatures().verify(verdict.key, toVerify, issuerAuth.signature)).to.equal(true); // biome-ignore format: one statement
      const signer = readDocumentSigner(leaf);
      checkDocumentSigner(signer, MDL_DOCUMENT_SIGNER);
      checkValidity(mso.validity, signer, clock.now());
    });
  }

  it('lives 90 days unless told otherwise, and not longer than its certificate', async () => {
    const validityOf = async (lifeTime: number | undefined) =>
      read(await world.make(anMdoc(BADGE, { lifeTime }), { name: 'Ada' })).mso.validity;
    const usual = await validityOf(undefined);
    expect([usual.signed, usual.validUntil].map((time) => time.toISOString())).to.deep.equal([
      '2026-06-01T00:00:00.000Z',
      '2026-08-30T00:00:00.000Z',
    ]);
    const long = await validityOf(10 * 365 * 86_400);
    expect(long.validUntil.toISOString()).to.equal('2027-06-01T12:00:00.000Z');
    expect(long.validUntil <= world.chain.active.notAfter).to.equal(true);
  });

  it('makes copies that share neither salts nor numbers, but all of their times', async () => {
    const claims = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`name_${index}`, index]));
    const copies = await Promise.all([1, 2, 3].map(() => world.make(anMdoc(BADGE), claims)));
    const opened = copies.map((text) => read(text));
    const items = opened.flatMap(({ opened: { items } }) =>
      [...(items.get(NAMESPACE) ?? [])].map(({ whole }) => whole.toString('hex')),
    );
    expect(new Set(items).size).to.equal(36);
    expect(new Set(opened.map(({ mso }) => JSON.stringify(mso.validity))).size).to.equal(1);
  });

  it('makes copies that live for minutes, each with an end of its own within its lifetime', async () => {
    const instances = Array.from({ length: 40 }, () => ({ holderKey: newKey().jwk as never }));
    const short = anMdoc(BADGE, { lifeTime: 300 });
    const copies = await world.factory.make(aView(world.chain), short, { name: 'Ada' }, instances);
    const times = copies.map((text) => read(text).mso.validity);
    const now = Math.floor(world.clock.now().getTime() / 1000);
    const lives = times.map(({ validUntil }) => validUntil.getTime() / 1000 - now);
    for (const life of lives) expect(life).to.be.within(270, 300);
    expect(new Set(lives).size).to.be.above(5);
    expect(new Set(times.map(({ signed }) => signed.toISOString()))).to.deep.equal(
      new Set(['2026-06-01T12:00:00.000Z']),
    );
  });

  describe('that is a driving licence', () => {
    const licence = (issuing_country: string) => ({
      [MDL_NAMESPACE]: { family_name: 'Ada', issuing_country },
    });

    it('is made for the country of its signer alone', async () => {
      const german = await aFactory('ES256', 'DE');
      const { elements } = read(await german.make(anMdoc(), licence('DE')), MDL);
      expect(elements).to.deep.equal(licence('DE'));
      const failure = await failureOf(german.make(anMdoc(), licence('FR')));
      expect(failure.code).to.equal('credential_request_denied');
      // The name of the key chain is random, and may have any letters.
      expect((failure.cause as Error).message).to.match(
        /key chain .* issuing_country is another than DE((?!FR).)*$/,
      );
    });

    it('is made for any country where the certificates name none', async () => {
      const { elements } = read(await world.make(anMdoc(), licence('FR')), MDL);
      expect(elements).to.deep.equal(licence('FR'));
    });

    it('has rules of its own: other documents may name any country', async () => {
      const german = await aFactory('ES256', 'DE');
      const badge = { docType: 'org.example.badge', namespace: MDL_NAMESPACE };
      const { elements } = read(await german.make(anMdoc(badge), licence('FR')), badge.docType);
      expect(elements).to.deep.equal(licence('FR'));
    });
  });

  it('is refused without a key of the device', async () => {
    const made = world.make(anMdoc(BADGE), { name: 'Ada' }, { holderKey: undefined });
    expect((await failureOf(made)).code).to.equal('invalid_proof');
  });

  it('comes with the types of a driving licence', async () => {
    const claims = {
      family_name: 'Nygård',
      birth_date: '1984-01-26',
      issue_date: '2024-01-02T03:04:05Z',
      portrait: '_9j_4A',
      height: 170,
      age_over_18: true,
      driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2024-01-02' }],
    };
    const { elements, opened } = read(await world.make(anMdoc(), claims), MDL);
    expect(elements).to.deep.equal({ [MDL_NAMESPACE]: claims });
    const items = (opened.items.get(MDL_NAMESPACE) ?? [])
      .map(({ content }) => content.toString('hex'))
      .join();
    // Tag 1004 and tag 0 before texts, a byte string, and an integer of two bytes.
    for (const bytes of ['d903ec6a313938342d30312d3236', 'c074323032342d30312d3032', '44ffd8ffe0', '18aa']) {
      expect(items).to.contain(bytes);
    }
  });
});
