import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { findTypeProblem, matchesIntegrity, parseType } from '../../../domain/verification/type-conformance.ts';
import { WalletWorld } from '../wallet-kit.ts';
import { ACME, type PresentationChanges, present, query, responseForm, World } from './kit.ts';

const VCT = 'https://types.example/card';
const sri = (text: string, name = 'sha256') => `${name}-${createHash(name).update(text).digest('base64')}`;
const CARD = { meta: { vct_values: [VCT] } };

describe('type of a presented credential', () => {
  let world: World;
  let document: JsonObject;
  let served: Record<string, string>;

  beforeEach(async () => {
    world = await World.make();
    await world.configure({ dcql_query: query({ id: 'card', ...CARD }), typeMetadata: 'enforced' });
    document = { vct: VCT, claims: [] };
    served = {};
    world.remote.answer = (url) => {
      const text = served[url];
      const body = Buffer.from(text ?? '');
      return { status: text === undefined ? 404 : 200, contentType: 'application/json', body };
    };
  });

  /** @returns the reason of the rejection. */
  const verify = async (changes: PresentationChanges = {}, integrity?: string | null): Promise<string> => {
    served[VCT] ??= JSON.stringify(document);
    const fetchedRequest = await world.request();
    const sriValue = integrity === undefined ? sri(served[VCT]) : integrity;
    const hashed = sriValue === null ? {} : { 'vct#integrity': sriValue };
    const visible = { vct: VCT, ...hashed, ...changes.visible };
    const form = await responseForm(fetchedRequest, { card: [present(world, fetchedRequest, { ...changes, visible })] });
    try {
      await world.receiveResponse.execute(ACME, fetchedRequest.publicId, form);
      return 'accepted';
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { outcome: expected } = await world.session(fetchedRequest.session.id);
      const reasons = (expected?.report ?? []).map((entry) => (entry as JsonObject)['reason']);
      return String(reasons.find((reason) => reason !== undefined));
    }
  };
  const verifyClaim = (claim: object) => {
    document = { vct: VCT, claims: [claim] } as JsonObject;
  };

  it('is fetched once by its hash, and cached', async () => {
    expect(await verify()).to.equal('accepted');
    expect(await verify()).to.equal('accepted');
    expect(world.remote.calls.map(({ url }) => url)).to.deep.equal([VCT]);
  });

  it('is not read unless the configuration requires it', async () => {
    verifyClaim({ path: ['name'], sd: 'never' });
    await world.configure({ dcql_query: query({ id: 'card', ...CARD }) });
    expect(await verify()).to.equal('accepted');
    expect(world.remote.calls).to.deep.equal([]);
  });

  const rules: readonly [object, PresentationChanges, string][] = [
    [{ path: ['name'], sd: 'always' }, {}, 'accepted'],
    [{ path: ['name'], sd: 'never' }, {}, 'type_metadata_broken'],
    [{ path: ['name'], sd: 'allowed', mandatory: true }, {}, 'accepted'],
    [{ path: ['country'], sd: 'always' }, { visible: { country: 'AT' } }, 'type_metadata_broken'],
    [{ path: ['country'], sd: 'never' }, { visible: { country: 'AT' } }, 'accepted'],
    [{ path: ['country'], sd: 'never', mandatory: true }, {}, 'type_metadata_broken'],
    [{ path: ['country'], sd: 'never', mandatory: true }, { visible: { country: 'AT' } }, 'accepted'],
    [{ path: ['country'], mandatory: true }, {}, 'accepted'],
    [{ path: ['vct'], sd: 'always' }, {}, 'accepted'],
    [{ path: [] }, {}, 'type_metadata_invalid'],
    [{ path: ['a'], sd: 'sometimes' }, {}, 'type_metadata_invalid'],
    [{ path: ['a'], mandatory: 'yes' }, {}, 'type_metadata_invalid'],
  ];
  for (const [claim, changes, expected] of rules) {
    it(`with ${JSON.stringify(claim)} and ${JSON.stringify(changes)} is ${expected}`, async () => {
      verifyClaim(claim);
      expect(await verify(changes)).to.equal(expected);
    });
  }

  it('is rejected when it is unavailable, or another type', async () => {
    expect(await verify({}, null), 'without a hash').to.equal('type_metadata_unavailable');
    expect(await verify({}, sri('other')), 'with another hash').to.equal('type_metadata_invalid');
    expect(await verify({}, 'md5-AAAA'), 'with a hash of an unknown algorithm').to.equal('type_metadata_invalid');
    served[VCT] = JSON.stringify({ vct: 'https://types.example/other' });
    expect(await verify(), 'of another type').to.equal('type_metadata_invalid');
    served[VCT] = '[]';
    expect(await verify(), 'no object').to.equal('type_metadata_invalid');
    delete served[VCT];
    world.remote.answer = () => ({ status: 404, contentType: '', body: Buffer.alloc(0) });
    expect(await verify({}, sri('gone'))).to.equal('type_metadata_unavailable');
  });

  it('is fetched only from an https address', async () => {
    for (const vct of ['urn:eudi:pid:1', 'http://types.example/card']) {
      await world.configure({ dcql_query: query({ id: 'card', meta: { vct_values: [vct] } }), typeMetadata: 'enforced' });
      expect(await verify({ visible: { vct } }), vct).to.equal('type_metadata_unavailable');
    }
    expect(world.remote.calls).to.deep.equal([]);
  });

  it('has the rules of the types that it extends', async () => {
    const parentType = 'https://types.example/above';
    served[parentType] = JSON.stringify({ vct: parentType, claims: [{ path: ['name'], sd: 'never' }] });
    document = { vct: VCT, extends: parentType, 'extends#integrity': sri(served[parentType]) };
    expect(await verify()).to.equal('type_metadata_broken');
    served[VCT] = JSON.stringify({ vct: VCT, extends: parentType });
    expect(await verify(), 'the extended type must have a hash, too').to.equal('type_metadata_unavailable');
  });

  it('is not fetched for an invalid credential, nor for a response to another request', async () => {
    expect(await verify({ visible: { exp: world.seconds - 100 } })).to.equal('credential_expired');
    expect(await verify({ kb: { nonce: 'other' } })).to.equal('nonce_mismatch');
    expect(world.remote.calls).to.deep.equal([]);
  });
});

describe('type that a tenant hosts itself', () => {
  it('is read locally, as it is served, without a request', async () => {
    const world = await WalletWorld.open();
    const claims = [{ path: ['name'], sd: 'always' }];
    await world.putCredential({ id: 'card', vct: { claims }, disclosureFrame: { _sd: ['name'] } });
    const { tenant } = await world.caller();
    const vct = `${tenant.issuer}/vct/card`;
    const check = (visible: object) =>
      world.typeMetadata
        .verify(tenant, { vct, name: 'Ada' }, { vct, ...visible })
        .then(() => 'accepted')
        .catch((error: Error) => error.message);
    expect(await check({ _sd: ['digest'] })).to.equal('accepted');
    expect(await check({ name: 'Ada' })).to.include('must be selectively disclosable');
    expect(await check({ _sd: ['digest'], 'vct#integrity': sri('other') })).to.include('does not match the document');
    expect(world.remote.calls).to.deep.equal([]);
  });
});

describe('metadata of a credential type', () => {
  it('match the strongest hash that is named', () => {
    const document = Buffer.from('x');
    const [weak, strong] = [sri('x'), sri('x', 'sha512')];
    for (const integrity of [weak, strong, `${weak} ${strong}`, `${sri('y')} ${strong}`, `${weak}?opt`])
      expect(matchesIntegrity(document, integrity), integrity).to.equal(true);
    for (const invalidIntegrity of ['', 'x', `${weak} ${sri('y', 'sha512')}`, sri('y'), 'sha256-', 'sha1-AAAA'])
      expect(matchesIntegrity(document, invalidIntegrity), invalidIntegrity).to.equal(false);
  });

  it('apply a rule to the claim itself, and not to its parent', () => {
    const rule = (path: (string | number | null)[], sd: 'always' | 'never') =>
      parseType(JSON.stringify({ vct: 'x', claims: [{ path, sd }] }), 'x').claims;
    const street = rule(['address', 'street'], 'never');
    const claims = { address: { street: 'Weg 1' } };
    const digest = { _sd: ['digest'] };
    expect(findTypeProblem(street, claims, { ...digest }), 'the address was withheld as a whole').to.equal(undefined);
    expect(findTypeProblem(street, claims, { address: digest })).to.include('must not');
    expect(findTypeProblem(street, claims, claims)).to.equal(undefined);
    const list = rule(['nationalities', null], 'always');
    expect(findTypeProblem(list, { nationalities: ['AT'] }, { nationalities: [{ '...': 'digest' }] })).to.equal(undefined);
    expect(findTypeProblem(list, { nationalities: ['AT'] }, { nationalities: ['AT'] })).to.include('must be');
    expect(findTypeProblem(rule(['nationalities', 1], 'always'), { nationalities: ['AT'] }, { nationalities: ['AT'] })).to.equal(undefined);
  });
});
