import { compileQuery } from '../../../domain/dcql/compile.ts';
import { matchCredential } from '../../../domain/dcql/match.ts';
import { selectClaims } from '../../../domain/dcql/path.ts';
import { DcqlQuery, SupportedDcqlQuery } from '../../../domain/dcql/query.ts';
import { pickRequested } from '../../../domain/dcql/select-claims.ts';
import { findMissingAnswers, parseVpToken } from '../../../domain/dcql/vp-token.ts';
import { isUndisclosed, UNDISCLOSED } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { text } from './seeds.ts';

const claims = { vct: 'v', name: 'Erika', ages: [17, 18, 42], places: [{ city: 'Bonn' }, { city: 'Ulm' }], deep: { a: { b: null } } };
const query = {
  credentials: [
    {
      id: 'pid',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['v'] },
      claims: [
        { id: 'a', path: ['name'], values: ['Erika', 1, true] },
        { id: 'b', path: ['places', null, 'city'] },
        { id: 'c', path: ['ages', 1] },
      ],
      claim_sets: [['a', 'b'], ['c']],
    },
    { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'd' }, claims: [{ path: ['n', 'e'] }], multiple: true },
  ],
  credential_sets: [{ options: [['pid'], ['mdl']], required: false }],
};
const PRESENTED = { holderBound: true, authority: { authorityKeyIds: ['k'], trustListUris: [], federationEntityIds: [] } };

/** "?" marks an undisclosed value. */
function withUndisclosed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => (item === '?' ? UNDISCLOSED : withUndisclosed(item)));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withUndisclosed(item)]));
}

/** Decodes a query and the claims that it is matched against. */
function decodeQuery(input: Buffer): void {
  const document = parseJson(text(input), 60);
  if (!isJsonObject(document)) return;
  SupportedDcqlQuery.safeParse(document['query']);
  const parsedQuery = DcqlQuery.safeParse(document['query']);
  if (!parsedQuery.success) return;
  const compiled = compileQuery(parsedQuery.data);
  for (const id of compiled.credentials.keys()) findMissingAnswers(compiled, new Set([id]));
  const presentedClaims = withUndisclosed(document['claims']);
  if (!isJsonObject(presentedClaims)) return;
  for (const [, credentialQuery] of compiled.credentials) checkMatch(credentialQuery, presentedClaims);
}

function checkMatch(credentialQuery: Parameters<typeof matchCredential>[0], claims: JsonObject): void {
  const makeCredential = (shownClaims: JsonObject) => ({
    ...PRESENTED,
    format: credentialQuery.format,
    types: [...credentialQuery.types],
    claims: shownClaims,
    alwaysVisible: {},
  });
  const match = matchCredential(credentialQuery, makeCredential(claims), isUndisclosed);
  if (match.matched) {
    const picked = pickRequested(match, makeCredential(claims), isUndisclosed);
    const values = new Set(leaves(claims));
    ensure(
      leaves(picked).every((leaf) => values.has(leaf)),
      'pickRequested returned a value that was not presented',
    );
  }
  for (const name of Object.keys(claims).slice(0, 10)) {
    const { [name]: _withheld, ...less } = claims;
    const isMatch = matchCredential(credentialQuery, makeCredential(less), isUndisclosed).matched;
    ensure(match.matched || !isMatch, 'a query matches fewer claims but not the full set');
    const claimSets = credentialQuery.claimSets ?? [];
    const isNeeded = claimSets.length > 0 && claimSets.every((set) => set.some(({ path }) => path[0] === name));
    ensure(!isNeeded || !isMatch, 'a claim that is not disclosed never matches');
  }
}

function leaves(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return [value];
  return Object.values(value).flatMap(leaves);
}

/** A direct implementation of OpenID4VP 1.0 section 7.1. */
function selectByReference(root: unknown, path: readonly unknown[]): readonly unknown[] | undefined {
  let selected: unknown[] = [root];
  for (const component of path) {
    const isName = typeof component === 'string';
    if (!isName && component !== null && !(Number.isSafeInteger(component) && Number(component) >= 0)) return undefined;
    if (!selected.every((one) => (isName ? isJsonObject(one) : Array.isArray(one)))) return undefined;
    selected = selected.flatMap((one) => {
      const entries = Object.entries(one as object).filter(([key]) => component === null || key === String(component));
      return entries.map(([, value]) => value).filter((value) => value !== UNDISCLOSED);
    });
  }
  return path.length === 0 || selected.length === 0 ? undefined : selected;
}

function decodePath(input: Buffer): void {
  const document = parseJson(text(input), 60);
  if (!isJsonObject(document) || !Array.isArray(document['path'])) return;
  const root = withUndisclosed(document['claims']);
  const selected = selectClaims(root, document['path'], isUndisclosed);
  const expectedSelection = selectByReference(root, document['path']);
  ensure(
    (typeof selected === 'string') === (expectedSelection === undefined),
    'selectClaims and the direct implementation differ on whether a path matches',
  );
  if (expectedSelection === undefined || typeof selected === 'string') return;
  ensure(
    expectedSelection.length === selected.length && expectedSelection.every((value, index) => Object.is(value, selected[index])),
    'selectClaims and the direct implementation differ on the selected values',
  );
}

const compiled = compileQuery(DcqlQuery.parse(query));

function decodeVpToken(input: Buffer): void {
  const value = parseJson(text(input));
  const presentations = parseVpToken(value, compiled);
  ensure(
    [...presentations.keys()].every((id) => compiled.credentials.has(id)),
    'parseVpToken returned an id that is not in the query',
  );
}

const cases = (documents: readonly unknown[]) => documents.map((one) => JSON.stringify(one));

export const DCQL: readonly Target[] = [
  {
    name: 'dcql',
    expected: neverExpected,
    seeds: cases([
      { query, claims },
      { query: { credentials: query.credentials.slice(1) }, claims: { n: { e: 1 } } },
    ]),
    dictionary: [
      '?',
      'path',
      'values',
      'claims',
      'claim_sets',
      'trusted_authorities',
      'aki',
      'k',
      'type',
      'id',
      'meta',
      'mso_mdoc',
      'constructor',
    ],
    decode: decodeQuery,
  },
  {
    name: 'claims-path',
    expected: neverExpected,
    seeds: cases([
      { path: ['places', null, 'city'], claims },
      { path: ['ages', 1], claims: { ages: ['?', 1, '?'] } },
      { path: [0, 1], claims: [[1, '?']] },
    ]),
    dictionary: ['?', 'path', 'claims', 'city', 'length', '0'],
    decode: decodePath,
  },
  {
    name: 'vp-token',
    expected: isInstanceOfAny(Refusal),
    seeds: cases([{ pid: ['x~'] }, { mdl: ['a', 'b'], pid: ['x'] }]),
    dictionary: ['pid', 'mdl'],
    decode: decodeVpToken,
  },
];
