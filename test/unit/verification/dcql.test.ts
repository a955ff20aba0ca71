import { expect } from 'chai';
import fc from 'fast-check';
import { compileQuery } from '../../../domain/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../../domain/dcql/match.ts';
import { selectClaims, selectElement } from '../../../domain/dcql/path.ts';
import { DcqlQuery, SupportedDcqlQuery } from '../../../domain/dcql/query.ts';
import { requiredTrustLists } from '../../../domain/dcql/required-trust-lists.ts';
import { pickDisclosed, pickRequested } from '../../../domain/dcql/select-claims.ts';
import { parseVpToken } from '../../../domain/dcql/vp-token.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { processorTime } from '../../support/measurements.ts';

const TOMBSTONE = Object.freeze({ undisclosed: true });
const isUndisclosed = (value: unknown) => value === TOMBSTONE;

function presentedCredential(claims: Record<string, unknown>, overrides: Partial<PresentedCredential> = {}) {
  return {
    format: 'dc+sd-jwt',
    types: ['urn:pid'],
    holderBound: true,
    claims,
    alwaysVisible: {},
    authority: { authorityKeyIds: [], trustListUris: [], federationEntityIds: [] },
    ...overrides,
  };
}

function query(overrides: object) {
  const parsed = DcqlQuery.parse({ credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] }, ...overrides }] });
  const compiled = compileQuery(parsed).credentials.get('pid');
  if (compiled === undefined) throw new Error('no such query');
  return compiled;
}

/** Returns the claims for the client, or the reason of the rejection. */
function matchResult(overrides: object, presented: PresentedCredential): JsonObject | string {
  const result = matchCredential(query(overrides), presented, isUndisclosed);
  return result.matched ? pickRequested(result, presented, isUndisclosed) : result.reason;
}

describe('DCQL queries', () => {
  const pid = { id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } };

  it('name the exact place of a fault', () => {
    const claims = [{ path: ['a'] }, { path: ['b', -1] }];
    const read = DcqlQuery.safeParse({ credentials: [pid, { ...pid, id: 'b', claims }] });
    const paths = read.error?.issues.map(({ path }) => path.join('.'));
    expect(paths).to.deep.equal(['credentials.1.claims.1.path.1']);
  });

  it('name the exact place of a contradiction between properties', () => {
    const claims = [{ id: 'a', path: ['a'] }];
    const credentials = [{ ...pid, claims, claim_sets: [['a'], ['a', 'z']] }];
    const read = DcqlQuery.safeParse({ credentials });
    const paths = read.error?.issues.map(({ path }) => path.join('.'));
    expect(paths).to.deep.equal(['credentials.0.claim_sets.1.1']);
  });

  it('are rejected in a configuration with a format that cannot be verified', () => {
    for (const format of ['jwt_vc_json', 'vc+sd-jwt', 'ldp_vc']) {
      const read = SupportedDcqlQuery.safeParse({ credentials: [{ ...pid, format }] });
      expect(read.error?.issues[0]?.path).to.deep.equal(['credentials', 0, 'format']);
    }
    expect(SupportedDcqlQuery.safeParse({ credentials: [pid] }).success).to.equal(true);
  });

  it('are rejected in a configuration if they have unknown properties', () => {
    const problemPath = (overrides: object) => {
      const read = SupportedDcqlQuery.safeParse({ credentials: [{ ...pid, ...overrides }] });
      return read.error?.issues.map(({ path }) => path.slice(2).join('.'));
    };
    const meta = { vct_values: ['urn:pid'], vct_value: 'urn:pid' };
    expect(problemPath({ meta })).to.deep.equal(['meta.vct_value']);
    const authority = (type: string) => ({ trusted_authorities: [{ type, values: ['AAEC'] }] });
    expect(problemPath(authority('openid_federation'))).to.deep.equal(['trusted_authorities.0.type']);
    for (const type of ['aki', 'etsi_tl']) expect(problemPath(authority(type))).to.equal(undefined);
  });

  const name = { id: 'name', path: ['name'] };
  const mdl = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'mdl' } };
  const invalidQueries: readonly (readonly [description: string, query: object, path: string])[] = [
    [
      'intent_to_retain of an SD-JWT VC',
      { credentials: [{ ...pid, claims: [{ ...name, intent_to_retain: false }] }] },
      'credentials.0.claims.0.intent_to_retain',
    ],
    ['a path that begins with null', { credentials: [{ ...pid, claims: [name, { path: [null, 'a'] }] }] }, 'credentials.0.claims.1.path.0'],
    ['a path that begins with a position', { credentials: [{ ...pid, claims: [{ path: [0] }] }] }, 'credentials.0.claims.0.path.0'],
    ['an overlarge position', { credentials: [{ ...pid, claims: [{ path: ['a', 2 ** 31] }] }] }, 'credentials.0.claims.0.path.1'],
    [
      'an id twice in a set of claims',
      { credentials: [{ ...pid, claims: [name], claim_sets: [['name', 'name']] }] },
      'credentials.0.claim_sets.0.1',
    ],
    [
      'an id twice in an option',
      { credentials: [pid, mdl], credential_sets: [{ options: [['pid'], ['mdl', 'pid', 'mdl']] }] },
      'credential_sets.0.options.1.2',
    ],
    ...['', 'AAE=', 'x', 'A+/A', 'AA EC'].map(
      (aki) =>
        [
          `the key identifier ${JSON.stringify(aki)}`,
          { credentials: [{ ...pid, trusted_authorities: [{ type: 'aki', values: ['AAEC', aki] }] }] },
          'credentials.0.trusted_authorities.0.values.1',
        ] as const,
    ),
  ];
  for (const [description, compiledQuery, path] of invalidQueries) {
    it(`are rejected in a configuration with ${description}, which wallets do not support`, () => {
      const read = SupportedDcqlQuery.safeParse(compiledQuery);
      expect(read.error?.issues.map(({ path }) => path.join('.'))).to.deep.equal([path]);
    });
  }

  it('are accepted in a configuration up to the limits of wallets, and with properties of mdocs', () => {
    const claims = [{ path: ['a', 2 ** 31 - 1] }, { path: ['a', null, 'b'] }];
    const elements = [{ path: ['ns', 'name'], intent_to_retain: true }];
    const credentials = [
      { ...pid, claims },
      { ...mdl, claims: elements },
    ];
    expect(SupportedDcqlQuery.safeParse({ credentials }).success).to.equal(true);
  });

  it('of an unsupported format have no matches', () => {
    const ldp = query({ format: 'ldp_vc', meta: { type_values: [['urn:pid']] } });
    expect(ldp.types).to.deep.equal(new Set());
    const mismatch = matchCredential(ldp, presentedCredential({}, { format: 'ldp_vc' }), isUndisclosed);
    expect(mismatch).to.deep.equal({ matched: false, reason: 'type_mismatch' });
  });

  it('require the named trust lists, and no others', () => {
    const trusted_authorities = [
      { type: 'aki', values: ['a'] },
      { type: 'etsi_tl', values: ['https://a.example', 'https://b.example'] },
    ];
    expect(requiredTrustLists(DcqlQuery.parse({ credentials: [pid, { ...pid, id: 'b', trusted_authorities }] }))).to.deep.equal(
      ['https://a.example', 'https://b.example'].map((uri, k) => ({
        uri,
        path: `dcql_query.credentials.1.trusted_authorities.1.values.${k}`,
      })),
    );
  });

  it('report which claim is missing, and by which rule a path ended', () => {
    const compiledQuery = query({ claims: [{ path: ['a', 'b'] }] });
    const missing = { matched: false, reason: 'missing_claim', detail: '["a","b"]' };
    expect(matchCredential(compiledQuery, presentedCredential({ a: 1 }), isUndisclosed)).to.deep.equal(missing);
    expect(selectClaims({ a: 1 }, ['a', 'b', null], isUndisclosed)).to.equal('not_an_object');
    expect(selectElement({ '7': { a: 1 } }, [7, 'a'])).to.equal('bad_path');
  });

  it('reject answers that are not an object', () => {
    const compiled = compileQuery(DcqlQuery.parse({ credentials: [pid] }));
    expect(() => parseVpToken(['x'], compiled)).to.throw(/^malformed: vp_token_not_object$/);
  });

  it('reject presentations that are not strings', () => {
    const compiled = compileQuery(DcqlQuery.parse({ credentials: [pid] }));
    for (const presentation of [{}, 7, null, ['x']]) {
      expect(() => parseVpToken({ pid: [presentation] }, compiled)).to.throw('malformed: not_a_string in pid');
    }
  });
});

describe('claims that a client receives', () => {
  it('are the requested ones in their original structure', () => {
    const presented = presentedCredential({ given_name: 'Ada', family_name: 'L', address: { locality: 'X', country: 'DE' } });
    const claims = [{ path: ['given_name'] }, { path: ['address', 'country'] }];
    expect(matchResult({ claims }, presented)).to.deep.equal({ given_name: 'Ada', address: { country: 'DE' } });
  });

  it('keep selected array elements, without placeholders', () => {
    const degrees = [{ type: 'B', year: 1 }, TOMBSTONE, { type: 'M' }, { year: 3 }];
    const presented = presentedCredential({ degrees, nationalities: [TOMBSTONE, 'FR', 'DE'] });
    const claims = [{ path: ['degrees', null, 'type'] }, { path: ['nationalities', 1] }];
    expect(matchResult({ claims }, presented)).to.deep.equal({ degrees: [{ type: 'B' }, { type: 'M' }], nationalities: ['FR'] });
    const claimList = [{ path: ['nationalities'] }, { path: ['nationalities', null] }, { path: ['degrees', 0] }];
    expect(matchResult({ claims: claimList }, presented)).to.deep.equal({ nationalities: ['FR', 'DE'], degrees: [{ type: 'B', year: 1 }] });
  });

  it('never contain positions of withheld values, nor arrays without requested elements', () => {
    const presented = presentedCredential({ nationalities: [TOMBSTONE, 'FR'], rows: [[], ['x']], is: [true, 10n] });
    const claims = [{ path: ['nationalities', null] }, { path: ['rows', null, null] }, { path: ['is'] }];
    expect(matchResult({ claims }, presented)).to.deep.equal({
      nationalities: ['FR'],
      rows: [['x']],
      // A value without a JSON form cannot be returned.
      is: [true],
    });
  });

  it('merge several paths through one array element', () => {
    const presented = presentedCredential({
      list: [
        { a: 1, b: 2, c: 3 },
        { a: 4, b: 5 },
      ],
    });
    const claims = [{ path: ['list', null, 'a'] }, { path: ['list', 0, 'b'] }];
    expect(matchResult({ claims }, presented)).to.deep.equal({ list: [{ a: 1, b: 2 }, { a: 4 }] });
  });

  it('never include protocol claims', () => {
    const presented = presentedCredential({ cnf: { jwk: {} }, status: {}, a: { _sd: ['x'], b: null, c: [{ '...': 'y' }] } });
    const claims = [{ path: ['cnf'] }, { path: ['status'] }, { path: ['a'] }];
    expect(matchResult({ claims }, presented)).to.deep.equal({ a: { b: null, c: [] } });
  });

  it('are the always visible ones if no claims are requested', () => {
    const alwaysVisible = { vct: 'urn:pid', iss: 'x', cnf: {}, status: {}, _sd: [], _sd_alg: 'sha-256' };
    const presented = presentedCredential({ ...alwaysVisible, disclosed: 1 }, { alwaysVisible });
    expect(matchResult({}, presented)).to.deep.equal({ vct: 'urn:pid', iss: 'x' });
  });

  it('are those of the first complete claim set only', () => {
    const claims = [
      { id: 'a', path: ['a'], values: [1] },
      { id: 'b', path: ['b'] },
      { id: 'c', path: ['c'] },
    ];
    const claim_sets = [['a'], ['b'], ['c']];
    expect(matchResult({ claims, claim_sets }, presentedCredential({ a: 2, b: 3, c: 4 }))).to.deep.equal({ b: 3 });
  });

  it('keep the namespaces of an mdoc separate', () => {
    const presented = presentedCredential({ n1: { status: 1, x: 2 }, n2: { x: 3 } }, { format: 'mso_mdoc', types: ['d'] });
    const claims = [{ path: ['n1', 'status'] }, { path: ['n2', 'x'] }];
    const mdoc = { format: 'mso_mdoc', meta: { doctype_value: 'd' } };
    expect(matchResult({ ...mdoc, claims }, presented)).to.deep.equal({ n1: { status: 1 }, n2: { x: 3 } });
    expect(matchResult(mdoc, presented)).to.deep.equal({});
    const unreadable = { ...presented, claims: { status: { list: 4 } } };
    const path = ['status', 'list'];
    expect(matchResult({ ...mdoc, claims: [{ path }] }, unreadable)).to.deep.equal({ status: { list: 4 } });
  });

  it('are all disclosed ones, without protocol claims, if configured', () => {
    const claims = { a: 1, b: [TOMBSTONE, 2], cnf: {}, status: {} };
    expect(pickDisclosed(presentedCredential(claims), isUndisclosed)).to.deep.equal({ a: 1, b: [2] });
    const elements = (unreadable: Error) => ({
      x: 2,
      get y(): number {
        throw unreadable;
      },
    });
    const mdoc = (error: Error) => presentedCredential({ n1: { status: 1 }, n2: elements(error) }, { format: 'mso_mdoc', types: ['d'] });
    // A value without a JSON form is reported when it is read.
    const unreadable = mdoc(new Refusal('malformed', 'no JSON'));
    expect(pickDisclosed(unreadable, isUndisclosed)).to.deep.equal({ n1: { status: 1 }, n2: { x: 2 } });
    expect(() => pickDisclosed(mdoc(new Error('a bug')), isUndisclosed)).to.throw('a bug');
  });

  it('cannot reach a prototype', () => {
    const presented = presentedCredential(JSON.parse('{"__proto__":{"x":1}}') as Record<string, unknown>);
    const result = matchResult({ claims: [{ path: ['__proto__', 'x'] }] }, presented);
    expect(Object.getPrototypeOf(result)).to.equal(Object.prototype);
    expect(JSON.stringify(result)).to.equal('{"__proto__":{"x":1}}');
    expect(matchResult({ claims: [{ path: ['constructor'] }] }, presentedCredential({}))).to.equal('missing_claim');
  });
});

describe('DCQL matching of arbitrary documents', () => {
  const name = fc.constantFrom('a', 'b', 'constructor', '__proto__', 'toString', '0');
  const component = fc.oneof(name, fc.constant(null), fc.nat(3));
  const claim = fc.record(
    {
      path: fc.array(component, { minLength: 1, maxLength: 4 }),
      values: fc.array(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['path'] },
  );
  const document = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(fc.oneof(tie('node'), fc.constant(TOMBSTONE)), { maxLength: 4 }),
      fc.dictionary(name, tie('node'), { maxKeys: 4 }),
    ),
  })).node;

  it('never throws, and returns only values of the document', () => {
    const generated = fc.uniqueArray(claim, { minLength: 1, maxLength: 4, selector: (c) => JSON.stringify(c.path) });
    const outcomes = { matched: 0, refused: 0, ungrammatical: 0 };
    fc.assert(
      fc.property(generated, fc.dictionary(name, document), fc.boolean(), (claims, root, isMdoc) => {
        const format = isMdoc ? 'mso_mdoc' : 'dc+sd-jwt';
        const meta = isMdoc ? { doctype_value: 'urn:pid' } : { vct_values: ['urn:pid'] };
        const read = DcqlQuery.safeParse({ credentials: [{ id: 'pid', format, meta, claims }] });
        if (!read.success) {
          outcomes.ungrammatical++;
          return;
        }
        const presented = presentedCredential(root, { format });
        const result = matchResult({ format, meta, claims }, presented);
        outcomes[typeof result === 'string' ? 'refused' : 'matched']++;
        if (typeof result === 'string') return;
        expect(JSON.stringify(result)).not.to.contain('undisclosed');
        for (const key of Object.keys(result)) expect(Object.hasOwn(root, key)).to.equal(true);
      }),
      // The seed is fixed, since each outcome must occur.
      { numRuns: 300, seed: 20260601 },
    );
    expect(Math.min(...Object.values(outcomes))).to.be.greaterThan(0);
  });

  it('never throws while parsing a query', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        DcqlQuery.safeParse(value);
        DcqlQuery.safeParse({ credentials: value });
        DcqlQuery.safeParse({ credentials: [value] });
      }),
    );
  });
});

describe('size of DCQL queries', () => {
  const repeat = <T>(count: number, buildQuery: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => buildQuery(i));
  const path = ['a'];
  const pid = { id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } };
  const ids = (count: number) => repeat(count, (i) => `c${i}`);
  const claims = repeat(200, (i) => ({ id: `c${i}`, path: [`a${i}`] }));
  const queryWith = (overrides: object) => ({ credentials: [{ ...pid, ...overrides }] });
  const sets = (options: string[][]) => ({ credentials: [pid], credential_sets: [{ options }] });
  const limits: Record<string, [number, (count: number) => object]> = {
    credentials: [50, (n) => ({ credentials: repeat(n, (i) => ({ ...pid, id: `p${i}` })) })],
    claims: [200, (n) => queryWith({ claims: repeat(n, (i) => ({ path: [`a${i}`] })) })],
    'claim sets': [50, (n) => queryWith({ claims, claim_sets: repeat(n, (i) => [`c${i}`]) })],
    'ids in a claim set': [200, (n) => queryWith({ claims, claim_sets: [repeat(n, () => 'c0')] })],
    'credential sets': [50, (n) => ({ credentials: [pid], credential_sets: repeat(n, () => ({ options: [['pid']] })) })],
    options: [50, (n) => sets(repeat(n, () => ['pid']))],
    'ids in an option': [50, (n) => sets([repeat(n, () => 'pid')])],
    values: [200, (n) => queryWith({ claims: [{ path, values: ids(n) }] })],
    'characters of a value': [1_000, (n) => queryWith({ claims: [{ path, values: ['v'.repeat(n)] }] })],
    authorities: [50, (n) => queryWith({ trusted_authorities: repeat(n, () => ({ type: 'aki', values: ['v'] })) })],
    'values of a trusted authority': [100, (n) => queryWith({ trusted_authorities: [{ type: 'aki', values: ids(n) }] })],
    'steps of a path': [32, (n) => queryWith({ claims: [{ path: repeat(n, () => 'a') }] })],
    types: [100, (n) => queryWith({ meta: { vct_values: ids(n) } })],
  };
  for (const [description, [limit, buildQuery]] of Object.entries(limits)) {
    it(`is limited to ${limit} ${description}`, () => {
      expect(DcqlQuery.safeParse(buildQuery(limit)).error?.issues).to.equal(undefined);
      expect(DcqlQuery.safeParse(buildQuery(limit + 1)).success).to.equal(false);
    });
  }

  it('is limited to one occurrence of a claim set', () => {
    const read = DcqlQuery.safeParse(queryWith({ claims, claim_sets: [['c0', 'c1'], ['c2'], ['c1', 'c0']] }));
    expect(read.error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal(['credentials.0.claim_sets.2']);
  });

  it('limits the time of a match: each claim is evaluated once, for any number of sets', () => {
    const claimQueries = repeat(200, (i) => ({ id: `c${i}`, path: ['list', null, `k${i}`], values: ids(200) }));
    // All sets fail at their last claim, so each evaluates all its claims.
    const claimSets = repeat(50, (i) => ids(200).filter((id) => id !== `c${i}`));
    const list = repeat(100, () => Object.fromEntries(repeat(200, (i) => [`k${i}`, i === 199 ? 'no' : 'c199'])));
    const compiledQuery = query({ claims: claimQueries, claim_sets: claimSets });
    let match: unknown;
    const cpuMs = processorTime(() => {
      match = matchCredential(compiledQuery, presentedCredential({ list }), isUndisclosed);
    });
    expect(match).to.include({ reason: 'claim_set_unsatisfied' });
    // Takes 70 ms. Searching the claims again for each set would take fifty times as long.
    expect(cpuMs).to.be.lessThan(1_000);
    let lookups = 0;
    const claims = new Proxy(
      { list },
      {
        getOwnPropertyDescriptor(target, key) {
          lookups++;
          return Reflect.getOwnPropertyDescriptor(target, key);
        },
      },
    );
    matchCredential(compiledQuery, presentedCredential(claims), isUndisclosed);
    expect(lookups).to.equal(200);
  });
});
