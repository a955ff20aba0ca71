import { createHash, verify, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { coseAlgorithm } from '../../../domain/formats/cose/algorithms.ts';
import { parseCoseKey } from '../../../domain/formats/cose/key.ts';
import { sigStructure } from '../../../domain/formats/cose/sign1.ts';
import { assertDocumentSigner, MDL_DOCUMENT_SIGNER, parseDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { assertValidity } from '../../../domain/formats/mdoc/mso.ts';
import { isUndisclosed, processDisclosures } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { parseSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import {
  credentialTimes,
  type ExpiryRange,
  expiryRanges,
  mdocValidity,
  protocolClaims,
  randomWithin,
  sdJwtTimes,
} from '../../../domain/issuance/credential.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { readIssuerSigned } from '../../support/mdoc-maker.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { aConfiguration, aFactory, anMdoc, aTenantView, ISSUER, MDL, MDL_NAMESPACE } from './kit.ts';
import { aFrameFor, someClaims } from './random-claims.ts';

describe('SD-JWT VC creation', () => {
  let world: Awaited<ReturnType<typeof aFactory>>;
  before(async () => {
    world = await aFactory();
  });

  const parse = (text: string) => {
    const { issuer, disclosures } = parseSdJwt(text);
    return { ...issuer, disclosures, claims: processDisclosures(issuer.payload, disclosures).claims };
  };
  const withoutArrays = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  it('keeps all claims, with nested, array or no disclosures', async () => {
    await fc.assert(
      fc.asyncProperty(someClaims, fc.infiniteStream(fc.boolean()), async (claims, choices) => {
        const frame = aFrameFor(claims, () => choices.next().value);
        const text = await world.make(aConfiguration({ vct: 'urn:card:1', disclosureFrame: frame }), claims);
        const { iss, vct, iat, cnf, _sd_alg, ...rest } = withoutArrays(withoutDecoys(parse(text).claims)) as Record<string, unknown>;
        expect([iss, vct, typeof iat, typeof cnf]).to.deep.equal([ISSUER, 'urn:card:1', 'number', 'object']);
        expect([undefined, 'sha-256']).to.include(_sd_alg);
        expect(rest).to.deep.equal(withoutArrays(claims));
      }),
      { numRuns: 50 },
    );
  });

  /** Removes decoys, which look like undisclosed array elements. */
  function withoutDecoys(value: unknown): unknown {
    if (Array.isArray(value)) return value.filter((member) => !isUndisclosed(member)).map(withoutDecoys);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutDecoys(member)]));
  }

  it('uses the expiry of the certificate as the limit, and no expiry without a lifetime', async () => {
    const make = async (lifeTime?: number) =>
      parse(await world.make(aConfiguration({ vct: 'urn:card:1', ...(lifeTime && { lifeTime }) }), { name: 'Ada' }));
    const { header, payload } = await make(100 * 365 * 86_400);
    const [leaf = ''] = header['x5c'] as string[];
    const notAfter = new X509Certificate(Buffer.from(leaf, 'base64')).validToDate.getTime() / 1000;
    expect(Number(payload['exp'])).to.be.within(notAfter - 3600, notAfter);
    expect((await make()).payload).to.not.have.property('exp');
  });

  it('signs under a chain without its anchor, with times in whole days', async () => {
    const { header, payload, signature, signingInput } = parse(
      await world.make(aConfiguration({ vct: 'urn:card:1', lifeTime: 30 * 86_400 }), { name: 'Ada' }),
    );
    expect(header).to.include({ typ: 'dc+sd-jwt', alg: 'ES256' });
    const [leaf = ''] = header['x5c'] as string[];
    expect(header['x5c']).to.have.length(1);
    const certificate = new X509Certificate(Buffer.from(leaf, 'base64'));
    expect(parseDocumentSigner(leaf).usages, 'a certificate for mdocs alone').to.equal(undefined);
    const key = { key: certificate.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha256', Buffer.from(signingInput), key, signature)).to.equal(true);
    expect([Number(payload['iat']) % 86_400, Number(payload['exp']) % 86_400]).to.deep.equal([0, 0]);
    expect(payload).to.not.have.property('vct#integrity');
  });

  it('includes the certificate of its signature, also when its chain is rotated concurrently', async () => {
    const { chain: rotated } = await aFactory();
    const view = aTenantView(world.chain);
    for (const chain of [world.chain, { ...rotated, id: world.chain.id }, world.chain]) {
      view.keyChains = async () => [chain];
      const [text = ''] = await world.factory.create(view, aConfiguration(), { name: 'Ada' }, [{}]);
      const { header, signature, signingInput } = parse(text);
      const leaf = new X509Certificate(Buffer.from((header['x5c'] as string[])[0] ?? '', 'base64'));
      const key = { key: leaf.publicKey, dsaEncoding: 'ieee-p1363' } as const;
      expect(verify('sha256', Buffer.from(signingInput), key, signature)).to.equal(true);
    }
  });

  it('gives copies with a lifetime of minutes separate expiry times within the lifetime', async () => {
    const shortLived = aConfiguration({ vct: 'urn:card:1', lifeTime: 300 });
    const instances = Array.from({ length: 40 }, () => ({}));
    const copies = await world.factory.create(aTenantView(world.chain), shortLived, { name: 'Ada' }, instances);
    const payloads = copies.map((text) => parse(text).payload);
    const now = Math.floor(world.clock.now().getTime() / 1000);
    const lives = payloads.map(({ exp }) => Number(exp) - now);
    for (const life of lives) expect(life).to.be.within(270, 300);
    expect(new Set(lives).size).to.be.above(5);
    for (const { iat } of payloads) expect(Number(iat) % 3600).to.equal(0);
  });

  it('binds no key without a requested one', async () => {
    const configuration = aConfiguration({ vct: 'urn:card:1', keyBinding: false });
    const { payload } = parse(await world.make(configuration, { name: 'Ada' }, { holderKey: undefined }));
    expect(payload).to.include({ vct: 'urn:card:1' }).and.not.have.property('cnf');
  });

  it('includes the integrity only of frozen type metadata', async () => {
    const integrityOf = async (changes: Record<string, unknown>) =>
      parse(await world.make(aConfiguration(changes), { name: 'Ada' })).payload['vct#integrity'];
    expect(await integrityOf({})).to.equal(undefined);
    const frozenType = '{"vct":"as it was"}';
    const digest = createHash('sha256').update(frozenType).digest('base64');
    expect(await integrityOf({ frozenType })).to.equal(undefined);
    const frozen = { ...aConfiguration({}), frozenType };
    expect(parse(await world.make(frozen, { name: 'Ada' })).payload['vct#integrity']).to.equal(`sha256-${digest}`);
    const foreign = { ...aConfiguration({ vct: 'urn:card:1' }), frozenType };
    expect(parse(await world.make(foreign, { name: 'Ada' })).payload).to.not.have.property('vct#integrity');
  });
});

const NAMESPACE = 'org.example.badge.1';
const BADGE = { docType: 'org.example.badge', namespace: NAMESPACE };

describe('mdoc creation', () => {
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

  it('keeps all claims', async () => {
    await fc.assert(
      fc.asyncProperty(someClaims, async (claims) => {
        const { elements } = read(await world.make(anMdoc(BADGE), claims));
        expect(elements).to.deep.equal({ [NAMESPACE]: claims });
      }),
      { numRuns: 50 },
    );
  });

  // issuance N145
  it('binds it to the device key, without padding, with times in whole hours', async () => {
    const holder = newKey();
    const status = { idx: 7, uri: `${ISSUER}/status-list/1` };
    const instance = { holderKey: holder.jwk as never, status };
    const [text = ''] = await world.factory.create(aTenantView(world.chain), anMdoc(BADGE, { lifeTime: 7200 }), { name: 'Ada' }, [
      instance,
    ]);
    expect(text).to.match(/^[A-Za-z0-9_-]+$/);
    const { mso, parsed } = read(text);
    expect(mso.docType).to.equal(BADGE.docType);
    expect(parseCoseKey(mso.deviceKey)).to.deep.equal(holder.jwk);
    expect(mso.status).to.deep.equal(new Map([['status_list', new Map<string, unknown>(Object.entries(status))]]));
    const { signed, validFrom, validUntil } = mso.validity;
    expect([signed, validFrom, validUntil].map((time) => time.toISOString())).to.deep.equal([
      '2026-06-01T12:00:00.000Z',
      '2026-06-01T12:00:00.000Z',
      '2026-06-01T14:00:00.000Z',
    ]);
    // ISO/IEC 18013-5 section 9.1.2.4: tdate without fractions, in UTC
    const payload = (parsed.issuerAuth.payload ?? Buffer.alloc(0)).toString('latin1');
    expect(payload.match(/\d{4}-\d\d-\d\dT[\d:.]+[^\d:.]/g)).to.have.length(3);
    expect(payload).to.not.match(/T\d\d:\d\d:\d\d(\.|\+)/);
  });

  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`is signed with ${algorithm} by a document signer under the chain's own authority`, async () => {
      const { make, chain, clock } = await aFactory(algorithm);
      const { parsed, mso, chain: certificates } = read(await make(anMdoc(), { family_name: 'Nygård' }), MDL);
      const { issuerAuth } = parsed;
      expect([...issuerAuth.protectedHeader]).to.deep.equal([[1, coseAlgorithm(algorithm)]]);
      expect([...issuerAuth.unprotectedHeader.keys()]).to.deep.equal([33]);
      const toVerify = sigStructure(issuerAuth.protectedBytes, issuerAuth.payload ?? Buffer.alloc(0));
      const [leaf = ''] = certificates;
      const anchors = [{ certificate: chain.root?.certificate ?? '' }];
      const verdict = new NodeCertificates().verifyChain(certificates, anchors, clock.now(), { purpose: 'mdoc', haip: true });
      expect(verdict.trusted && new NodeSignatures().verify(verdict.key, toVerify, issuerAuth.signature)).to.equal(true); // biome-ignore format: one statement
      const signer = parseDocumentSigner(leaf);
      assertDocumentSigner(signer, MDL_DOCUMENT_SIGNER);
      assertValidity(mso.validity, signer, clock.now());
    });
  }

  it('uses 90 days by default, and no longer than the certificate', async () => {
    const validityOf = async (lifeTime: number | undefined) =>
      read(await world.make(anMdoc(BADGE, { lifeTime }), { name: 'Ada' })).mso.validity;
    const usual = await validityOf(undefined);
    expect([usual.signed, usual.validUntil].map((time) => time.toISOString())).to.deep.equal([
      '2026-06-01T00:00:00.000Z',
      '2026-08-30T00:00:00.000Z',
    ]);
    const longest = await validityOf(10 * 365 * 86_400);
    expect(longest.validUntil.toISOString()).to.equal('2027-06-01T12:00:00.000Z');
    expect(longest.validUntil <= world.chain.active.notAfter).to.equal(true);
  });

  it('creates copies that share all times, but neither salts nor digest ids', async () => {
    const claims = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`name_${index}`, index]));
    const copies = await Promise.all([1, 2, 3].map(() => world.make(anMdoc(BADGE), claims)));
    const parsed = copies.map((text) => read(text));
    const items = parsed.flatMap(({ parsed: { items } }) =>
      [...(items.get(NAMESPACE) ?? [])].map(({ encoded }) => encoded.toString('hex')),
    );
    expect(new Set(items).size).to.equal(36);
    expect(new Set(parsed.map(({ mso }) => JSON.stringify(mso.validity))).size).to.equal(1);
  });

  it('creates copies of short lifetime, each with its own expiry within the lifetime', async () => {
    const instances = Array.from({ length: 40 }, () => ({ holderKey: newKey().jwk as never }));
    const shortLived = anMdoc(BADGE, { lifeTime: 300 });
    const copies = await world.factory.create(aTenantView(world.chain), shortLived, { name: 'Ada' }, instances);
    const times = copies.map((text) => read(text).mso.validity);
    const now = Math.floor(world.clock.now().getTime() / 1000);
    const lives = times.map(({ validUntil }) => validUntil.getTime() / 1000 - now);
    for (const life of lives) expect(life).to.be.within(270, 300);
    expect(new Set(lives).size).to.be.above(5);
    expect(new Set(times.map(({ signed }) => signed.toISOString()))).to.deep.equal(new Set(['2026-06-01T12:00:00.000Z']));
  });

  describe('for a driving licence', () => {
    const licence = (issuing_country: string) => ({ [MDL_NAMESPACE]: { family_name: 'Ada', issuing_country } });

    it('accepts only the country of its signer', async () => {
      const german = await aFactory('ES256', 'DE');
      const { elements } = read(await german.make(anMdoc(), licence('DE')), MDL);
      expect(elements).to.deep.equal(licence('DE'));
      const failure = await failureOf(german.make(anMdoc(), licence('FR')));
      expect(failure.code).to.equal('credential_request_denied');
      // The name of the key chain is random and may contain the searched letters.
      expect((failure.cause as Error).message).to.match(
        /key chain .* issuing_country differs from the country of the signer, DE((?!FR).)*$/,
      );
    });

    it('accepts any country if the certificates name none', async () => {
      const { elements } = read(await world.make(anMdoc(), licence('FR')), MDL);
      expect(elements).to.deep.equal(licence('FR'));
    });

    it('applies special rules: other documents may name any country', async () => {
      const german = await aFactory('ES256', 'DE');
      const badge = { docType: 'org.example.badge', namespace: MDL_NAMESPACE };
      const { elements } = read(await german.make(anMdoc(badge), licence('FR')), badge.docType);
      expect(elements).to.deep.equal(licence('FR'));
    });
  });

  it('is rejected without a device key', async () => {
    const result = world.make(anMdoc(BADGE), { name: 'Ada' }, { holderKey: undefined });
    expect((await failureOf(result)).code).to.equal('invalid_proof');
  });

  it('uses the element types of a driving licence', async () => {
    const claims = {
      family_name: 'Nygård',
      birth_date: '1984-01-26',
      issue_date: '2024-01-02T03:04:05Z',
      portrait: '_9j_4A',
      height: 170,
      age_over_18: true,
      driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2024-01-02' }],
    };
    const { elements, parsed } = read(await world.make(anMdoc(), claims), MDL);
    expect(elements).to.deep.equal({ [MDL_NAMESPACE]: claims });
    const items = (parsed.items.get(MDL_NAMESPACE) ?? []).map(({ content }) => content.toString('hex')).join();
    // The encodings of tag 1004 and tag 0 before texts, of a byte string, and of a two-byte integer.
    for (const bytes of ['d903ec6a313938342d30312d3236', 'c074323032342d30312d3032', '44ffd8ffe0', '18aa']) {
      expect(items).to.contain(bytes);
    }
  });
});

const NOW = new Date('2026-06-01T12:34:56.789Z');
const DAY = 86_400;
const utc = (text: string) => new Date(`${text}Z`);
const LONG_SIGNER = { notBefore: utc('2026-01-01T00:00:00'), notAfter: utc('2036-01-01T00:00:00') };

describe('mdoc times', () => {
  const cases: [string, number | undefined, typeof LONG_SIGNER, string, string][] = [
    ['are whole days', 30 * DAY, LONG_SIGNER, '2026-06-01T00:00:00', '2026-07-01T00:00:00'],
    ['are whole hours up to two days', 2 * DAY, LONG_SIGNER, '2026-06-01T12:00:00', '2026-06-03T12:00:00'],
    ['are whole hours from two hours on', 7200, LONG_SIGNER, '2026-06-01T12:00:00', '2026-06-01T14:00:00'],
    ['expire at the exact second for a lifetime below two hours', 7199, LONG_SIGNER, '2026-06-01T12:00:00', '2026-06-01T14:34:55'],
    ['expire after minutes', 300, LONG_SIGNER, '2026-06-01T12:00:00', '2026-06-01T12:39:56'],
    ['expire with the certificate without a lifetime', undefined, LONG_SIGNER, '2026-06-01T00:00:00', '2026-08-30T00:00:00'],
    [
      'begin at the first full hour of a new certificate',
      30 * DAY,
      { ...LONG_SIGNER, notBefore: utc('2026-06-01T08:15:00') },
      '2026-06-01T09:00:00',
      '2026-07-01T00:00:00',
    ],
    [
      'begin with a certificate of this hour',
      30 * DAY,
      { ...LONG_SIGNER, notBefore: utc('2026-06-01T12:15:00') },
      '2026-06-01T12:15:00',
      '2026-07-01T00:00:00',
    ],
    [
      'expire at the last full hour of the certificate',
      30 * DAY,
      { ...LONG_SIGNER, notAfter: utc('2026-06-15T08:15:00') },
      '2026-06-01T00:00:00',
      '2026-06-15T08:00:00',
    ],
    [
      'expire with a certificate that expires within the hour',
      30 * DAY,
      { ...LONG_SIGNER, notAfter: utc('2026-06-01T12:50:00') },
      '2026-06-01T00:00:00',
      '2026-06-01T12:50:00',
    ],
  ];
  for (const [description, lifeTime, signer, signed, validUntil] of cases) {
    it(description, () => {
      const times = mdocValidity(NOW, lifeTime, signer, 0);
      expect(times.signed).to.deep.equal(utc(signed));
      expect(times.validFrom).to.deep.equal(times.signed);
      expect(times.validUntil).to.deep.equal(utc(validUntil));
      // ISO/IEC 18013-5 section 9.3.1. No copy is expired when it is issued.
      expect(times.signed >= signer.notBefore && times.validUntil <= signer.notAfter).to.equal(true);
      expect(times.signed <= NOW && times.validUntil > NOW).to.equal(true);
    });
  }

  it('are the same within an hour, like those of an SD-JWT VC, for any random number', () => {
    const later = new Date(NOW.getTime() + 20 * 60_000);
    for (const lifeTime of [7200, 2 * DAY, 3 * DAY, undefined]) {
      expect(mdocValidity(later, lifeTime, LONG_SIGNER, 0.9)).to.deep.equal(mdocValidity(NOW, lifeTime, LONG_SIGNER, 0));
      expect(credentialTimes(later, lifeTime, 0.9)).to.deep.equal(credentialTimes(NOW, lifeTime, 0));
    }
  });
});

describe('credential expiry', () => {
  const seconds = Math.floor(NOW.getTime() / 1000);
  const LAST_DRAWN = 1 - 2 ** -32;

  it('is never after its lifetime, and is shortened by at most its unit from two hours on', () => {
    for (const lifeTime of [60, 61, 300, 1199, 1800, 7199, 7200, 9000, DAY, 2 * DAY, 2 * DAY + 1, 400 * DAY]) {
      for (const drawn of [0, 0.5, LAST_DRAWN]) {
        const { iat, exp = 0 } = credentialTimes(NOW, lifeTime, drawn);
        const unit = lifeTime > 2 * DAY ? DAY : 3600;
        const maxShift = lifeTime < 7200 ? Math.floor(lifeTime / 10) : unit - 1;
        expect(exp - seconds, `${lifeTime}`).to.be.within(lifeTime - maxShift, lifeTime);
        // Credentials that were issued within one unit have equal times.
        expect([iat % unit, iat <= seconds]).to.deep.equal([0, true]);
      }
    }
  });

  it('is random within the last tenth of a lifetime below two hours, limits included', () => {
    for (const [lifeTime, first, last] of [
      [300, 270, 300],
      [1800, 1620, 1800],
      [3600, 3240, 3600],
    ] as const) {
      const expiries = Array.from({ length: 4000 }, (_, index) => {
        const { exp = 0 } = credentialTimes(NOW, lifeTime, index / 4000);
        return exp - seconds;
      });
      expect([Math.min(...expiries), Math.max(...expiries)]).to.deep.equal([first, last]);
      expect(new Set(expiries).size).to.equal(last - first + 1);
    }
  });

  it('of the first and the last third are more than two minutes apart from one hour on', () => {
    for (let lifeTime = 3600; lifeTime < 7200; lifeTime++) {
      const expiry = (range: ExpiryRange, random: number) => credentialTimes(NOW, lifeTime, randomWithin(range, random)).exp ?? 0;
      // A larger random number means an earlier expiry.
      expect(expiry('first third', LAST_DRAWN) - expiry('last third', 0), `${lifeTime}`).to.be.above(120);
      expect(expiry('first third', 0) - seconds, `${lifeTime}`).to.equal(lifeTime);
      expect(expiry('last third', LAST_DRAWN) - seconds).to.equal(lifeTime - Math.floor(lifeTime / 10));
    }
  });

  it('is drawn from the first third for one copy of a batch and from the last for another, by chance', () => {
    expect(expiryRanges(1, [0.9, 0.9])).to.deep.equal(['whole']);
    const distinct = new Set<string>();
    for (let first = 0; first < 1; first += 0.1) {
      for (let second = 0; second < 1; second += 0.1) {
        const ranges = expiryRanges(4, [first, second]);
        expect(ranges.toSorted()).to.deep.equal(['first third', 'last third', 'whole', 'whole']);
        distinct.add(ranges.join());
      }
    }
    expect(distinct.size).to.equal(4 * 3);
  });

  it('is spread over more than two minutes from twenty minutes and ten seconds on', () => {
    for (let lifeTime = 1210; lifeTime < 7200; lifeTime += 10) {
      const [latest, earliest] = [0, LAST_DRAWN].map((drawn) => credentialTimes(NOW, lifeTime, drawn).exp ?? 0);
      expect((latest ?? 0) - (earliest ?? 0), `${lifeTime}`).to.be.above(120);
    }
  });

  it('stays within the certificate, for any random number', () => {
    const signer = { ...LONG_SIGNER, notAfter: utc('2026-06-01T12:39:50') };
    expect(sdJwtTimes(NOW, 300, signer, 0).exp).to.equal(signer.notAfter.getTime() / 1000);
    expect(mdocValidity(NOW, 300, signer, 0).validUntil).to.deep.equal(signer.notAfter);
    expect(sdJwtTimes(NOW, 300, signer, LAST_DRAWN).exp).to.equal(seconds + 270);
    expect(mdocValidity(NOW, 300, signer, LAST_DRAWN).validUntil.getTime() / 1000).to.equal(seconds + 270);
  });
});

describe('SD-JWT VC times', () => {
  const expiry = (text: string) => ({ notAfter: utc(text) });
  const cases: [string, number | undefined, { notAfter: Date } | undefined, string | undefined][] = [
    ['expire with the lifetime of the credential', 30 * DAY, LONG_SIGNER, '2026-07-01T00:00:00'],
    ['expire at the last full hour of the certificate', 30 * DAY, expiry('2026-06-15T08:15:00'), '2026-06-15T08:00:00'],
    ['expire with a certificate of this hour', 3600, expiry('2026-06-01T12:50:00'), '2026-06-01T12:50:00'],
    ['are not cut without a certificate', 30 * DAY, undefined, '2026-07-01T00:00:00'],
    ['have no expiry without a lifetime', undefined, expiry('2026-06-15T08:15:00'), undefined],
  ];
  for (const [description, lifeTime, signer, expected] of cases) {
    it(description, () => {
      const { iat, exp } = sdJwtTimes(NOW, lifeTime, signer, 0);
      expect(iat).to.equal(credentialTimes(NOW, lifeTime, 0).iat);
      expect(exp).to.equal(expected === undefined ? undefined : utc(expected).getTime() / 1000);
    });
  }
});

describe('SD-JWT VC payload', () => {
  const claims = { issuer: 'https://issuer.example/acme', vct: 'urn:card:1' };
  const claimsWith = (overrides: object = {}) => protocolClaims({ ...claims, times: credentialTimes(NOW, null, 0), ...overrides });

  it('has no expiry without a lifetime, and no property for absent features', () => {
    const iat = utc('2026-06-01T00:00:00').getTime() / 1000;
    expect(claimsWith()).to.deep.equal({ iss: claims.issuer, vct: claims.vct, iat });
  });

  it('has the hash of its type if it is hosted with integrity', () => {
    expect(claimsWith({ vctIntegrity: 'sha256-x' })).to.include({ 'vct#integrity': 'sha256-x' });
  });
});
