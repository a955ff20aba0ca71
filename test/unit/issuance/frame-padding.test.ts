import { expect } from 'chai';
import { readDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { processDisclosures } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { prepareSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import { openSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import { paddedFrame } from '../../../domain/issuance/frame-padding.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { aConfiguration, aFactory } from './kit.ts';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    title: true,
    address: { $ref: '#/$defs/address' },
    languages: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    never: false,
  },
  $defs: { address: { type: 'object', properties: { street: {}, flat: {} } } },
};
const FRAME = {
  _sd: ['name', 'title', 'address', 'unknown'],
  address: { _sd: ['street', 'flat'] },
  languages: { _sd: [0, 1] },
};
const WHOLE = {
  name: 'Ada',
  title: 'Dr',
  address: { street: 'Main Street', flat: 1 },
  languages: ['de', 'en'],
};

/** Digests at every place that has some, with those within disclosed values. */
function digests(value: Json, at = '', found: Record<string, number> = {}): Record<string, number> {
  if (typeof value !== 'object' || value === null) return found;
  if (Array.isArray(value)) {
    const entries = value as readonly Json[];
    const hidden = entries.filter((entry) => typeof entry === 'object' && entry !== null && '...' in entry);
    if (hidden.length > 0) found[at] = hidden.length;
  } else if ('_sd' in value) found[at] = (value['_sd'] as readonly Json[]).length;
  for (const [key, member] of Object.entries(value)) {
    if (key !== '_sd') digests(member, `${at}/${key}`, found);
  }
  return found;
}

describe('The number of digests', () => {
  const prepared = (claims: JsonObject, frame: JsonObject = FRAME, schema: JsonObject = SCHEMA) =>
    prepareSdJwt({
      header: { alg: 'ES256' },
      alwaysVisible: { vct: 'urn:x' },
      claims,
      frame: paddedFrame(readDisclosureFrame(frame), schema),
      randomBytes: (length) => Buffer.alloc(length, 7).map((byte, index) => (byte + index) % 251) as Buffer,
    });
  const payloadOf = (claims: JsonObject, frame?: JsonObject, schema?: JsonObject) =>
    JSON.parse(
      Buffer.from(prepared(claims, frame, schema).signingInput.split('.')[1] ?? '', 'base64url').toString(),
    ) as JsonObject;
  const numbers = (claims: JsonObject, frame?: JsonObject, schema?: JsonObject) =>
    digests(payloadOf(claims, frame, schema));
  const disclosed = (claims: JsonObject) =>
    prepared(claims).disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()));

  it('is the same for a holder with all claims and for one without', () => {
    const all = numbers(WHOLE);
    expect(all).to.deep.equal({ '': 3, '/languages': 2 });
    expect(numbers({ languages: ['de', 'en'] })).to.deep.equal(all);
    expect(numbers({ name: 'Ada', languages: ['de'] })).to.deep.equal(all);
    expect(numbers({ title: null, languages: [] })).to.deep.equal(all);
  });

  it('is the same within what is disclosed', () => {
    const address = (flat: object) =>
      disclosed({ ...WHOLE, address: { street: 'Main Street', ...flat } }).find(
        ([, name]) => name === 'address',
      );
    expect(address({})[2]._sd).to.have.length(2);
    expect(address({ flat: 1 })[2]._sd).to.have.length(2);
  });

  it('counts no claim that only the frame knows, and adds what the frame wants besides', () => {
    expect(numbers({ unknown: 1 }, FRAME)['']).to.equal(4);
    expect(numbers({}, FRAME)['']).to.equal(3);
    expect(numbers({}, { _sd: ['name', 'never'], _sd_decoy: 2 })['']).to.equal(3);
    expect(numbers({}, { _sd: ['name'] }, {})).to.deep.equal({});
    expect(numbers({ languages: [] }, { languages: { _sd: [0, 5] } })).to.deep.equal({ '/languages': 1 });
  });

  it('counts positions and members as far as the schema knows them', () => {
    const list = (more: object) => ({ properties: { list: { type: 'array', ...more } } });
    const of = (more: object) => numbers({ list: [] }, { list: { _sd: [0, 1, 2] } }, list(more))['/list'];
    expect(of({ prefixItems: [{}, false], items: { type: 'string' } })).to.equal(2);
    expect(of({ items: true })).to.equal(3);
    expect(of({ items: true, maxItems: 2 })).to.equal(2);
    expect(of({ prefixItems: [{}] }), 'beyond which nothing is said').to.equal(1);
    expect(of({})).to.equal(undefined);
  });

  it('counts what the schema refers to, and nothing where that leads nowhere', () => {
    const of = ($ref: string) =>
      numbers({ child: {} }, { child: { _sd: ['name'] } }, { properties: { name: {}, child: { $ref } } });
    expect(of('#')).to.deep.equal({ '/child': 1 });
    for (const nowhere of ['#/$defs/none', '#/properties/name']) expect(of(nowhere)).to.deep.equal({});
  });

  it('of a padded credential leaves its claims as they are', async () => {
    const world = await aFactory();
    const configuration = aConfiguration({ vct: 'urn:x', disclosureFrame: FRAME, schema: SCHEMA });
    const claims = { name: 'Ada', languages: ['de'] };
    const { issuer, disclosures } = openSdJwt(await world.make(configuration, claims));
    const { claims: read } = processDisclosures(issuer.payload, disclosures);
    expect(read).to.deep.include({ name: 'Ada' });
    expect(disclosures).to.have.length(2);
    expect(digests(issuer.payload)).to.deep.equal({ '': 3, '/languages': 2 });
    const salts = new Set((issuer.payload['_sd'] as readonly string[]).concat());
    expect(salts.size, 'all of them differ').to.equal(3);
  });
});
