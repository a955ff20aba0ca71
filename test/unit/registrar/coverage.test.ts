import { expect } from 'chai';
import { covers, type RegisteredCredential } from '../../../domain/registrar/coverage.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { DcqlQuery } from '../../../domain/verification/dcql/query.ts';

const META = { vct_values: ['urn:pid:1', 'urn:pid:2'] };
const PID: RegisteredCredential = {
  format: 'dc+sd-jwt',
  meta: META,
  claims: [{ path: ['given_name'] }, { path: ['address', 'street'] }, { path: ['degrees', null, 'type'] }],
};
const MDL_META = { doctype_value: 'org.iso.18013.5.1.mDL' };
const MDL: RegisteredCredential = {
  format: 'mso_mdoc',
  meta: MDL_META,
  claims: [{ path: ['org.iso.18013.5.1', 'family_name'] }],
};
const ADULT: RegisteredCredential = { ...PID, claims: [{ path: ['age'], values: [18, 21] }] };
const BARE: RegisteredCredential = { format: PID.format, meta: META };

const asked = (...credentials: JsonObject[]) =>
  DcqlQuery.parse({
    credentials: credentials.map((credential, index) => ({
      id: `q${index}`,
      format: 'dc+sd-jwt',
      meta: META,
      ...credential,
    })),
  });
const claims = (...paths: (string | number | null)[][]) => ({ claims: paths.map((path) => ({ path })) });
const values = (path: string[], ...given: (string | number)[]) => ({ claims: [{ path, values: given }] });
const licence = { format: 'mso_mdoc', meta: MDL_META, ...claims(['org.iso.18013.5.1', 'family_name']) };

describe('A registration certificate covers', () => {
  type Case = [string, readonly RegisteredCredential[] | undefined, DcqlQuery];
  const covered: Case[] = [
    ['what is registered', [PID], asked(claims(['given_name'], ['address', 'street']))],
    ['less than is registered', [PID], asked(claims(['address', 'street']))],
    ['claims in another order', [PID], asked(claims(['address', 'street'], ['given_name']))],
    ['a wildcard as it is registered', [PID], asked(claims(['degrees', null, 'type']))],
    ['types in another order', [PID], asked({ meta: { vct_values: ['urn:pid:2', 'urn:pid:1'] } })],
    [
      'meta with nothing in it',
      [{ ...PID, meta: { ...META, a: null } }],
      asked({ meta: { a: null, ...META } }),
    ],
    ['meta in another order', [{ ...PID, meta: { a: 1, ...META } }], asked({ meta: { ...META, a: 1 } })],
    [
      'claims that stand in two entries',
      [PID, { ...PID, claims: [{ path: ['age'] }] }],
      asked(claims(['given_name'], ['age'])),
    ],
    ['several queries, each by its entry', [MDL, PID], asked(claims(['given_name']), licence)],
    ['a query without claims', [PID], asked({})],
    ['a query without claims by an entry without', [BARE], asked({})],
    ['registered values', [ADULT], asked(values(['age'], 18))],
    ['any value of a claim without values', [PID], asked(values(['given_name'], 'Ada'))],
  ];
  for (const [what, credentials, query] of covered) {
    it(what, () => {
      expect(covers(credentials === undefined ? {} : { credentials }, query)).to.deep.equal({
        covered: true,
      });
    });
  }

  const NONE = 'no dc+sd-jwt with this meta is registered';
  const gaps: [...Case, string][] = [
    ['a claim more', [PID], asked(claims(['given_name'], ['age'])), 'the claim ["age"] is not registered'],
    ['the whole of which a part is registered', [PID], asked(claims(['address'])), 'the claim ["address"]'],
    ['a part of another name', [PID], asked(claims(['address', 'city'])), 'the claim ["address","city"]'],
    ['a position instead of a wildcard', [PID], asked(claims(['degrees', 0, 'type'])), 'the claim'],
    [
      'a position instead of a name',
      [{ ...PID, claims: [{ path: ['a', '0'] }] }],
      asked(claims(['a', 0])),
      'the claim',
    ],
    ['another type', [PID], asked({ meta: { vct_values: ['urn:other:1'] } }), NONE],
    ['one type of two', [PID], asked({ meta: { vct_values: ['urn:pid:1'] } }), NONE],
    ['a type more', [PID], asked({ meta: { vct_values: [...META.vct_values, 'x'] } }), NONE],
    ['a member of meta more', [PID], asked({ meta: { ...META, more: true } }), NONE],
    ['another format', [{ ...PID, format: 'mso_mdoc' }], asked(claims(['given_name'])), NONE],
    ['a second credential', [PID], asked(claims(['given_name']), { meta: { vct_values: ['b'] } }), '"q1"'],
    ['a licence', [PID], asked(licence), 'no mso_mdoc with this meta is registered'],
    [
      'claims of another entry',
      [MDL, { ...PID, claims: [{ path: ['age'] }] }],
      asked(claims(['given_name'])),
      'the claim',
    ],
    ['anything by an empty list', [{ ...PID, claims: [] }], asked({}), NONE],
    ['a claim by an absent list', [BARE], asked(claims(['given_name'])), 'the claim'],
    ['anything without credentials', undefined, asked({}), NONE],
    ['anything by an empty registration', [], asked({}), NONE],
    ['other values', [ADULT], asked(values(['age'], 18, 16)), 'the claim ["age"]'],
    ['any value where some are registered', [ADULT], asked(claims(['age'])), 'the claim ["age"]'],
    ['a value of another type', [ADULT], asked(values(['age'], '18')), 'the claim ["age"]'],
  ];
  for (const [what, credentials, query, gap] of gaps) {
    it(`not ${what}`, () => {
      const coverage = covers(credentials === undefined ? {} : { credentials }, query);
      expect(coverage).to.include({ covered: false });
      expect((coverage as { gap: string }).gap).to.include(gap);
    });
  }
});
