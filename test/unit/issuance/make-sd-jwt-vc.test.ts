import { createHash, verify, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { readDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { isUndisclosed, processDisclosures } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { openSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import { aConfiguration, aFactory, aView, ISSUER } from './kit.ts';
import { aFrameFor, someClaims } from './random-claims.ts';

describe('Making an SD-JWT VC', () => {
  let world: Awaited<ReturnType<typeof aFactory>>;
  before(async () => {
    world = await aFactory();
  });

  const open = (text: string) => {
    const { issuer, disclosures } = openSdJwt(text);
    return { ...issuer, disclosures, claims: processDisclosures(issuer.payload, disclosures).claims };
  };
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  it('keeps whatever was claimed, disclosed in nests and arrays or not at all', async () => {
    await fc.assert(
      fc.asyncProperty(someClaims, fc.infiniteStream(fc.boolean()), async (claims, choices) => {
        const frame = aFrameFor(claims, () => choices.next().value);
        const text = await world.make(aConfiguration({ vct: 'urn:card:1', disclosureFrame: frame }), claims);
        const { iss, vct, iat, cnf, _sd_alg, ...rest } = plain(withoutDecoys(open(text).claims)) as Record<
          string,
          unknown
        >;
        expect([iss, vct, typeof iat, typeof cnf]).to.deep.equal([ISSUER, 'urn:card:1', 'number', 'object']);
        expect([undefined, 'sha-256']).to.include(_sd_alg);
        expect(rest).to.deep.equal(plain(claims));
      }),
      { numRuns: 50 },
    );
  });

  /** Decoys in arrays read like elements that were withheld. */
  function withoutDecoys(value: unknown): unknown {
    if (Array.isArray(value)) return value.filter((member) => !isUndisclosed(member)).map(withoutDecoys);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutDecoys(member)]));
  }

  it('ends with the certificate that it carries at the latest, and has no end unless it was given a life', async () => {
    const make = async (lifeTime?: number) =>
      open(
        await world.make(aConfiguration({ vct: 'urn:card:1', ...(lifeTime && { lifeTime }) }), {
          name: 'Ada',
        }),
      );
    const { header, payload } = await make(100 * 365 * 86_400);
    const [leaf = ''] = header['x5c'] as string[];
    const notAfter = new X509Certificate(Buffer.from(leaf, 'base64')).validToDate.getTime() / 1000;
    expect(Number(payload['exp'])).to.be.within(notAfter - 3600, notAfter);
    expect((await make()).payload).to.not.have.property('exp');
  });

  it('is signed under a chain without its anchor, and dated in whole days', async () => {
    const { header, payload, signature, signingInput } = open(
      await world.make(aConfiguration({ vct: 'urn:card:1', lifeTime: 30 * 86_400 }), { name: 'Ada' }),
    );
    expect(header).to.include({ typ: 'dc+sd-jwt', alg: 'ES256' });
    const [leaf = ''] = header['x5c'] as string[];
    expect(header['x5c']).to.have.length(1);
    const certificate = new X509Certificate(Buffer.from(leaf, 'base64'));
    expect(readDocumentSigner(leaf).usages, 'a certificate for mdocs alone').to.equal(undefined);
    const key = { key: certificate.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha256', Buffer.from(signingInput), key, signature)).to.equal(true);
    expect([Number(payload['iat']) % 86_400, Number(payload['exp']) % 86_400]).to.deep.equal([0, 0]);
    expect(payload).to.not.have.property('vct#integrity');
  });

  it('carries the certificate of its signature, also when its chain is rotated while others are made', async () => {
    const { chain: rotated } = await aFactory();
    const view = aView(world.chain);
    for (const chain of [world.chain, { ...rotated, id: world.chain.id }, world.chain]) {
      view.keyChains = async () => [chain];
      const [text = ''] = await world.factory.make(view, aConfiguration(), { name: 'Ada' }, [{}]);
      const { header, signature, signingInput } = open(text);
      const leaf = new X509Certificate(Buffer.from((header['x5c'] as string[])[0] ?? '', 'base64'));
      const key = { key: leaf.publicKey, dsaEncoding: 'ieee-p1363' } as const;
      expect(verify('sha256', Buffer.from(signingInput), key, signature)).to.equal(true);
    }
  });

  it('ends copies that live for minutes each on its own, within its lifetime', async () => {
    const short = aConfiguration({ vct: 'urn:card:1', lifeTime: 300 });
    const instances = Array.from({ length: 40 }, () => ({}));
    const copies = await world.factory.make(aView(world.chain), short, { name: 'Ada' }, instances);
    const payloads = copies.map((text) => open(text).payload);
    const now = Math.floor(world.clock.now().getTime() / 1000);
    const lives = payloads.map(({ exp }) => Number(exp) - now);
    for (const life of lives) expect(life).to.be.within(270, 300);
    expect(new Set(lives).size).to.be.above(5);
    for (const { iat } of payloads) expect(Number(iat) % 3600).to.equal(0);
  });

  it('binds no key when none is asked for', async () => {
    const configuration = aConfiguration({ vct: 'urn:card:1', keyBinding: false });
    const { payload } = open(await world.make(configuration, { name: 'Ada' }, { holderKey: undefined }));
    expect(payload).to.include({ vct: 'urn:card:1' }).and.not.have.property('cnf');
  });

  it('vouches for frozen type metadata, and for no other', async () => {
    const integrityOf = async (changes: Record<string, unknown>) =>
      open(await world.make(aConfiguration(changes), { name: 'Ada' })).payload['vct#integrity'];
    expect(await integrityOf({})).to.equal(undefined);
    const frozenType = '{"vct":"as it was"}';
    const digest = createHash('sha256').update(frozenType).digest('base64');
    expect(await integrityOf({ frozenType })).to.equal(undefined);
    const frozen = { ...aConfiguration({}), frozenType };
    expect(open(await world.make(frozen, { name: 'Ada' })).payload['vct#integrity']).to.equal(
      `sha256-${digest}`,
    );
    const foreign = { ...aConfiguration({ vct: 'urn:card:1' }), frozenType };
    expect(open(await world.make(foreign, { name: 'Ada' })).payload).to.not.have.property('vct#integrity');
  });
});
