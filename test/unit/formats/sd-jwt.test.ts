import { hash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { type Frame, parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { type Disclosed, processDisclosures, UNDISCLOSED } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { prepareSdJwt, sealSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import { parseSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { withoutUndisclosed } from '../../support/sd-jwt-maker.ts';

const HEADER = { alg: 'ES256', typ: 'dc+sd-jwt' };
const VISIBLE = { vct: 'urn:example:card', iat: 1_800_000_000 };
const SIGNATURE = Buffer.alloc(64, 1);

function issue(claims: JsonObject, frame?: Frame): string {
  const contents = { header: HEADER, alwaysVisible: VISIBLE, claims, random: randomBytes };
  const prepared = prepareSdJwt(frame === undefined ? contents : { ...contents, frame });
  return sealSdJwt(prepared, SIGNATURE);
}

function disclose(text: string): { readonly [member: string]: Disclosed } {
  const { issuer, disclosures } = parseSdJwt(text);
  return processDisclosures(issuer.payload, disclosures).claims;
}

/** Members and positions at random, children first or not at all. */
function frameOf(value: Json, choose: () => boolean, isRoot = true): Frame {
  const keys = Array.isArray(value) ? value.map((_, index) => index) : Object.keys(value as JsonObject);
  const children = keys.flatMap((key) => {
    const member = (value as Record<string | number, Json>)[key];
    if (typeof member !== 'object' || member === null || !choose()) return [];
    return [[String(key), frameOf(member, choose, false)] as const];
  });
  return {
    hidden: new Set<string | number>(keys.filter(choose)),
    decoys: Array.isArray(value) && isRoot ? 0 : choose() ? 2 : 0,
    children: new Map(children),
  };
}

const RESERVED = /^(_sd|_sd_alg|\.\.\.|__proto__)$/;
/** V8 of Node 24 reads `{"a":1,"\""}` with the name `\\` where it has read a backslash as a name before (`JSON.parse`). */
const MISREAD = /^["\\]$/;
const PROTOCOL = /^(iss|iat|nbf|exp|cnf|vct|vct#integrity|aka_vcts|status|aud)$/;

function isAllowed(value: unknown, isRoot: boolean): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every((member) => isAllowed(member, false));
  return Object.entries(value).every(
    ([name, member]) => !RESERVED.test(name) && !MISREAD.test(name) && !(isRoot && PROTOCOL.test(name)) && isAllowed(member, false),
  );
}

const aClaimSet = fc
  .dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 8 })
  .map((claims) => JSON.parse(JSON.stringify(claims)) as JsonObject)
  .filter((claims) => isAllowed(claims, true));

describe('SD-JWT issuance', () => {
  it('restores any claims from any frame when everything is disclosed', () => {
    fc.assert(
      fc.property(aClaimSet, fc.infiniteStream(fc.boolean()), (claims, choices) => {
        const frame = frameOf(claims, () => choices.next().value === true);
        const { iat, vct, ...rest } = withoutUndisclosed(disclose(issue(claims, frame)));
        expect({ iat, vct }).to.deep.equal(VISIBLE);
        expect(JSON.parse(JSON.stringify(rest))).to.deep.equal(claims);
      }),
      { numRuns: 120 },
    );
  });

  it('reveals nothing of a hidden claim without its disclosure', () => {
    const claims = { name: 'Erika', age: 44, nationalities: ['DE', 'FR'], address: { street: 'x', city: 'y' } };
    const frame = parseDisclosureFrame({ _sd: ['name', 'age'], nationalities: { _sd: [0, 1] }, address: { _sd: ['street'] } });
    const text = issue(claims, frame);
    const { issuer } = parseSdJwt(text);
    const bare = processDisclosures(issuer.payload, []).claims;
    expect(withoutUndisclosed(bare)).to.deep.equal({ ...VISIBLE, nationalities: [], address: { city: 'y' } });
    expect(bare['nationalities']).to.deep.equal([UNDISCLOSED, UNDISCLOSED]);
    expect(text.endsWith('~')).to.equal(true);
  });

  it('keeps the issued positions when one element of an array is withheld', () => {
    const frame = parseDisclosureFrame({ nationalities: { _sd: [0, 1] } });
    const { issuer, disclosures } = parseSdJwt(issue({ nationalities: ['DE', 'FR', 'US'] }, frame));
    const { claims } = processDisclosures(issuer.payload, disclosures.slice(1));
    expect(claims['nationalities']).to.deep.equal([UNDISCLOSED, 'FR', 'US']);
    expect(withoutUndisclosed(claims)['nationalities']).to.deep.equal(['FR', 'US']);
  });

  it('sorts digests, so that their order reveals nothing', () => {
    const claims = { z: 1, y: 2, x: 3, w: 4, v: 5 };
    const { issuer } = parseSdJwt(issue(claims, parseDisclosureFrame({ _sd: Object.keys(claims), _sd_decoy: 3 })));
    const digests = issuer.payload['_sd'] as readonly string[];
    expect(digests).to.have.length(8);
    expect(digests).to.deep.equal([...digests].sort());
  });

  it('requests randomness once and never repeats a salt', () => {
    let calls = 0;
    const frame = parseDisclosureFrame({ _sd: ['a', 'b', 'c'], b: { _sd: ['d'] } });
    const { disclosures } = prepareSdJwt({
      header: HEADER,
      alwaysVisible: VISIBLE,
      claims: { a: 1, b: { d: 2 }, c: 3 },
      frame,
      random: (length) => {
        calls++;
        return randomBytes(length);
      },
    });
    const salts = disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString())[0] as string);
    expect(calls).to.equal(1);
    expect(new Set(salts).size).to.equal(4);
    expect(salts.every((salt) => Buffer.from(salt, 'base64url').length >= 16)).to.equal(true);
  });

  it('has neither _sd nor _sd_alg when nothing is hidden', () => {
    for (const frame of [undefined, parseDisclosureFrame({ _sd: ['absent'] })]) {
      const { issuer, disclosures } = parseSdJwt(issue({ name: 'Erika' }, frame));
      expect(issuer.payload).to.deep.equal({ ...VISIBLE, name: 'Erika' });
      expect(disclosures).to.deep.equal([]);
    }
  });

  for (const name of ['vct', 'cnf', 'status', 'iss', 'iat', 'exp', 'nbf', '_sd', '_sd_alg', '...']) {
    it(`rejects a claim named ${name}`, () => {
      expect(() => issue({ [name]: 'x' })).to.throw(Failure);
    });
  }

  it('rejects reserved names at any depth', () => {
    expect(() => issue({ a: [{ b: { _sd: ['x'] } }] })).to.throw(Failure, 'reserved');
    expect(() => issue(JSON.parse('{"a":{"__proto__":{"x":1}}}'))).to.throw(Failure, 'reserved');
    expect(() => issue({ a: [{ constructor: { prototype: { x: 1 } } }] })).to.throw(Failure, 'reserved');
  });

  it('rejects a frame that does not fit the claims', () => {
    expect(() => issue({ a: 'text' }, parseDisclosureFrame({ a: { _sd: ['b'] } }))).to.throw(Failure);
    expect(() => issue({ a: ['x'] }, parseDisclosureFrame({ a: { _sd: ['0'] } }))).to.throw(Failure);
  });
});

describe('disclosure frame', () => {
  const refused: readonly unknown[] = [
    null,
    'x',
    [],
    { _sd: 'name' },
    { _sd: [true] },
    { _sd: [-1] },
    { _sd: [1.5] },
    { _sd: ['a', 'a'] },
    { _sd: ['_sd'] },
    { _sd: ['...'] },
    { _sd_decoy: -1 },
    { _sd_decoy: '1' },
    { child: 1 },
    JSON.parse('{"__proto__":{}}'),
    ...['iss', 'nbf', 'exp', 'cnf', 'vct', 'vct#integrity', 'aka_vcts', 'status', 'aud', '_sd_alg'].map((name) => ({ _sd: [name] })),
    { cnf: { _sd: ['jwk'] } },
  ];
  for (const frame of refused) {
    it(`is rejected: ${JSON.stringify(frame)}`, () => {
      expect(() => parseDisclosureFrame(frame)).to.throw(Failure);
    });
  }

  it('may use the name of a protocol claim below the top level', () => {
    const frame = parseDisclosureFrame({ document: { _sd: ['status', 'exp'] } });
    expect(frame.children.get('document')?.hidden).to.deep.equal(new Set(['status', 'exp']));
  });
});

describe('claims called constructor and prototype', () => {
  const salted = (name: string, value: Json) => Buffer.from(JSON.stringify(['salt', name, value])).toString('base64url');
  const digestOf = (disclosure: string) => hash('sha256', disclosure, 'base64url');

  it('are disclosed like any other', () => {
    const disclosures = [salted('constructor', 'ACME'), salted('prototype', false)];
    const { claims } = processDisclosures({ _sd: disclosures.map(digestOf) }, disclosures);
    expect({ ...claims }).to.deep.equal({ constructor: 'ACME', prototype: false });
  });

  it('are rejected when a disclosure puts a prototype into a constructor', () => {
    const inner = salted('prototype', { polluted: true });
    const outer = salted('constructor', { _sd: [digestOf(inner)] });
    const open = (...disclosures: string[]) => processDisclosures({ _sd: [digestOf(disclosures[0] ?? '')] }, disclosures);
    expect(() => open(outer, inner)).to.throw(Refusal);
    expect(() => open(salted('constructor', { prototype: 1 }))).to.throw(Refusal);
    expect(({} as Record<string, unknown>)['polluted']).to.equal(undefined);
  });

  it('are issued, also selectively disclosable', () => {
    const claims = { constructor: 'ACME', prototype: { constructor: 1 } };
    const { issuer, disclosures } = parseSdJwt(issue(claims, parseDisclosureFrame({ _sd: ['constructor'] })));
    expect(processDisclosures(issuer.payload, disclosures).claims['constructor']).to.equal('ACME');
  });
});

describe('SD-JWT parsing', () => {
  const valid = issue({ a: 1, b: ['x'] }, parseDisclosureFrame({ _sd: ['a'], b: { _sd: [0] } }));

  function refusalOf(text: string): string | undefined {
    try {
      const { issuer, disclosures } = parseSdJwt(text);
      processDisclosures(issuer.payload, disclosures);
      return undefined;
    } catch (error) {
      if (error instanceof Refusal) return error.reason;
      throw error;
    }
  }

  it('throws only rejections for arbitrary text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_.~-]{0,200}$/)), (text) => {
        refusalOf(text);
      }),
      { numRuns: 500 },
    );
  });

  it('throws only rejections for a changed valid SD-JWT', () => {
    const piece = fc.oneof(fc.constantFrom('~', '.', '', 'e30', 'W10', '='), fc.string({ maxLength: 4 }));
    const place = fc.nat({ max: valid.length });
    fc.assert(
      fc.property(place, fc.nat({ max: 9 }), piece, (at, removed, added) => {
        refusalOf(valid.slice(0, at) + added + valid.slice(at + removed));
      }),
      { numRuns: 500 },
    );
  });

  it('throws only rejections for arbitrary payloads and disclosures', () => {
    const member = fc.constantFrom('_sd', '...', '_sd_alg', 'a');
    const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<Json>(null, 1, 'x', 'sha-256'),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(member, tie('tree'), { maxKeys: 4 }),
      ) as fc.Arbitrary<Json>,
    }));
    fc.assert(
      fc.property(fc.dictionary(member, tree), fc.array(tree), (payload, values) => {
        const disclosures = values.map((value) => Buffer.from(JSON.stringify(value)).toString('base64url'));
        try {
          processDisclosures(payload, disclosures);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
        }
      }),
      { numRuns: 300 },
    );
  });

  it('limits disclosures, size and certificates', () => {
    expect(refusalOf(valid + 'W10~'.repeat(10_000))).to.equal('malformed');
    expect(refusalOf(`${valid}${'A'.repeat(1600 * 1024)}~`)).to.equal('malformed');
    expect(refusalOf(`${valid}${'A'.repeat(132 * 1024)}~`), 'no array').to.equal('malformed_disclosure');
    const header = Buffer.from(JSON.stringify({ x5c: Array(7).fill('AAAA') })).toString('base64url');
    expect(refusalOf(`${header}.e30.AA~`)).to.equal('malformed');
  });
});
