import { expect } from 'chai';
import { assertOfUse } from '../../../application/registrar/certificate-subject.ts';
import { DcqlQuery } from '../../../domain/dcql/query.ts';
import { buildSigningInput } from '../../../domain/formats/jose/compact.ts';
import { findQueryCoverage, type RegisteredCredential } from '../../../domain/registrar/coverage.ts';
import { organizationIdentifiers } from '../../../domain/registrar/organization-identifier.ts';
import {
  belongsToVerifier,
  findTimeProblem,
  parseRegistration,
  parseRegistrationCertificate,
  RegistrationCertificateRefusal,
} from '../../../domain/registrar/registration-certificate.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { certify } from '../../support/test-certificates.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const SECONDS = NOW.getTime() / 1000;
const HEADER = { alg: 'ES256', typ: 'rc-wrp+jwt', x5c: ['AAAA'] };
const PAYLOAD = { sub: 'VATDE-1', iat: SECONDS };

/** Returns the JWT. Undefined properties are omitted. */
const jwt = (header: object = {}, payload: object = {}) => {
  const withoutUndefined = (members: object) => JSON.parse(JSON.stringify(members)) as JsonObject;
  return `${buildSigningInput(withoutUndefined({ ...HEADER, ...header }), withoutUndefined({ ...PAYLOAD, ...payload }))}.AA`;
};
const parse = (payload: object) => parseRegistration(parseRegistrationCertificate(jwt({}, payload)));
const rejectionOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof RegistrationCertificateRefusal) return error.message;
    throw error;
  }
  return 'accepted';
};

describe('registration certificate', () => {
  const entry = (properties: object) => ({ credentials: [{ format: 'x', meta: {}, ...properties }] });
  const claim = { path: ['a'] };

  it('is parsed with the names of V1.2.1', () => {
    const meta = { vct_values: ['x'] };
    const status = { status_list: { idx: 1, uri: 'https://x.example' } };
    const certificate = parse({
      intended_use_id: 'use-1',
      intermediary: { sub: 'VATFR-2', sname: 'Broker' },
      credentials: [{ format: 'dc+sd-jwt', meta, claim: [{ path: ['a', null], values: [1] }] }],
      exp: SECONDS + 60,
      status,
    });
    expect(certificate).to.deep.equal({
      subject: 'VATDE-1',
      intermediary: 'VATFR-2',
      intendedUseId: 'use-1',
      credentials: [{ format: 'dc+sd-jwt', meta, claims: [{ path: ['a', null], values: [1] }] }],
      issuedAt: NOW,
      expiresAt: new Date(NOW.getTime() + 60_000),
      status,
    });
  });

  it('is parsed with both names when they have the same value', () => {
    const claims = [{ path: ['a'], values: [1, 'x'] }];
    const registered = [{ values: [1, 'x'], path: ['a'] }];
    const { credentials } = parse(entry({ claim: claims, claims: registered }));
    expect(credentials).to.deep.equal([{ format: 'x', meta: {}, claims }]);
  });

  it('is parsed with former names', () => {
    const certificate = parse({
      sub: { legal_name: 'Acme', id: 'VATDE-9' },
      act: { sub: 'VATFR-3' },
      credentials: [{ format: 'mso_mdoc', meta: {}, claims: [{ path: ['n', 'e'] }] }],
    });
    expect(certificate).to.deep.include({
      subject: 'VATDE-9',
      intermediary: 'VATFR-3',
      credentials: [{ format: 'mso_mdoc', meta: {}, claims: [{ path: ['n', 'e'] }] }],
    });
  });

  it('is parsed without optional properties', () => {
    expect(parse({})).to.deep.equal({ subject: 'VATDE-1', issuedAt: NOW });
    const { credentials, intendedUseId } = parse({ ...entry({}), intended_uses: [{ id: 'use-1' }] });
    expect(credentials).to.deep.equal([{ format: 'x', meta: {} }]);
    expect(intendedUseId).to.equal('use-1');
  });

  const headers: [string, object, string][] = [
    ['of another type', { typ: 'rc-rp+jwt' }, 'its type is not rc-wrp+jwt'],
    ['without type', { typ: undefined }, 'its type is not rc-wrp+jwt'],
    ['without signature', { alg: 'none' }, 'its signature algorithm'],
    ['with a shared secret', { alg: 'HS256' }, 'its signature algorithm'],
    ['without signer', { x5c: undefined }, 'x5c'],
    ['with an empty chain', { x5c: [] }, 'x5c'],
    ['with an unknown critical parameter', { crit: ['exp'], exp: 1 }, 'critical header parameter'],
    ['with a missing critical parameter', { crit: ['sigT'] }, 'critical header parameter'],
    ['with an empty crit', { crit: [] }, 'critical header parameter'],
    ['with a payload that is not encoded', { crit: ['b64'], b64: false }, 'b64'],
  ];
  for (const [description, header, message] of headers) {
    it(`is rejected ${description}`, () => {
      expect(rejectionOf(() => parseRegistrationCertificate(jwt(header)))).to.include(message);
    });
  }

  it('may mark checked parameters as critical', () => {
    const header = { crit: ['sigT', 'b64'], sigT: '2026-01-01T00:00:00Z', b64: true };
    expect(rejectionOf(() => parseRegistrationCertificate(jwt(header)))).to.equal('accepted');
  });

  it('is rejected if it is malformed', () => {
    for (const text of ['', 'a.b.c', `${jwt()}.x`, 'x'.repeat(70_000)]) {
      expect(rejectionOf(() => parseRegistrationCertificate(text))).to.equal('it is not a compact JWS');
    }
  });

  const payloads: [string, object, string][] = [
    ['no party', { sub: undefined }, 'sub'],
    ['no name', { sub: '' }, 'sub'],
    ['a party without an identifier', { sub: { legal_name: 'Acme' } }, 'sub'],
    ['an intermediary without identifier', { intermediary: {} }, 'intermediary'],
    ['no time', { iat: undefined }, 'iat'],
    ['a time that is invalid', { exp: 'tomorrow' }, 'exp'],
    ['a time beyond all calendars', { nbf: 1e300 }, 'nbf'],
    ['two intended uses', { intended_use_id: ['a', 'b'] }, 'several intended uses'],
    ['two intended uses in a list', { intended_uses: [{ id: 'a' }, { id: 'b' }] }, 'several intended uses'],
    ['an intended use without name', { intended_use_id: '' }, 'intended_use_id'],
    ['an intended use that is not a string', { intended_use_id: 7 }, 'intended_use_id'],
    ['an intended use without identifier', { intended_uses: [{}] }, 'intended_use_id'],
    ['a subject that is not a string', { sub: 7 }, 'sub'],
    ['a credential that is not an object', { credentials: ['x'] }, 'credentials'],
    ['a credential that is null', { credentials: [null] }, 'credentials'],
    ['a time that is a text', { exp: `${SECONDS}` }, 'exp'],
    ['a credential whose format is not a string', entry({ format: 7 }), 'its credentials.0.format is missing'],
    ['a credential whose meta is not an object', entry({ meta: 'x' }), 'its credentials.0.meta is'],
    ['a claim that is not an object', entry({ claim: [claim, 'a'] }), 'its credentials.0.claim.1 is'],
    ['a claim whose path is not a list', entry({ claim: [{ path: 'a' }] }), 'its credentials.0.claim.0.path is'],
    ['too many claims', entry({ claim: Array(1001).fill(claim) }), 'credentials'],
    ['credentials that are not a list', { credentials: {} }, 'credentials'],
    ['a credential without format', { credentials: [{ meta: {} }] }, 'its credentials.0.format is'],
    ['claims that are not a list', entry({ claims: null }), 'its credentials.0.claims is'],
    ['a claim without path', entry({ claims: [{}] }), 'its credentials.0.claims.0.path is'],
    ['values that are not a list', entry({ claim: [{ ...claim, values: 1 }] }), 'credentials.0.claim.0.values is'],
    ['two lists of claims', entry({ claim: [claim], claims: [] }), 'credentials.0.claim and credentials.0.claims differ'],
    [
      'two lists of claims in another order',
      entry({ claim: [claim, { path: ['b'] }], claims: [{ path: ['b'] }, claim] }),
      'credentials.0.claim and credentials.0.claims differ',
    ],
    ['too many credentials', { credentials: Array(201).fill({ format: 'x', meta: {} }) }, 'credentials'],
  ];
  for (const [description, payload, message] of payloads) {
    it(`is rejected when it names ${description}`, () => {
      expect(rejectionOf(() => parse(payload))).to.include(message);
    });
  }

  const times: [string, object, boolean][] = [
    ['without an expiry', {}, true],
    ['until it expires', { exp: SECONDS + 1 }, true],
    ['a minute longer, as clocks differ', { exp: SECONDS - 59 }, true],
    ['not afterwards', { exp: SECONDS - 60 }, false],
    ['from a minute before its start', { nbf: SECONDS + 60 }, true],
    ['not earlier', { nbf: SECONDS + 61 }, false],
    ['not before its issuance', { iat: SECONDS + 61 }, false],
  ];
  for (const [description, payload, isValid] of times) {
    it(`is used ${description}`, () => {
      expect(findTimeProblem(parse(payload), NOW) === undefined).to.equal(isValid);
    });
  }
});

describe('purpose of a registration certificate', () => {
  const purpose = [{ lang: 'en', content: 'Opening an account' }];
  const cases: [string, unknown, object[] | null, boolean][] = [
    ['the same', purpose, purpose, true],
    ['the same in another case of the language', [{ ...purpose[0], lang: 'EN' }], purpose, true],
    ['one in another language', [{ lang: 'de', content: 'Kontoeröffnung' }], purpose, true],
    ['none', undefined, purpose, true],
    ['an unreadable purpose', [{ lang: 'en' }, 7, 'x'], purpose, true],
    ['a purpose without a configured one', purpose, null, true],
    ['another one', [{ lang: 'en', content: 'Age check' }], purpose, false],
    ['one of two in the same language', [{ lang: 'en', content: 'Age check' }, ...purpose], purpose, true],
    [
      'the same in one language and another one in the other',
      [...purpose, { lang: 'de', content: 'Alter' }],
      [...purpose, { lang: 'de', content: 'Konto' }],
      false,
    ],
  ];
  for (const [description, identifier, configuredIdentifier, isValid] of cases) {
    const rejectionFor = (profile: 'eu' | 'haip') => {
      try {
        assertOfUse({ profile }, { ...parse({ purpose: identifier }), jwt: '' }, configuredIdentifier as never);
      } catch (error) {
        return (error as { errors?: unknown; message: string }).message;
      }
      return 'accepted';
    };
    it(`${isValid ? 'may' : 'must not'} be ${description} under the profile \`eu\` (ARF RPRC_09, RPRC_19)`, () => {
      expect(rejectionFor('eu') === 'accepted').to.equal(isValid);
      expect(rejectionFor('haip'), 'no check without the profile').to.equal('accepted');
    });
  }
});

describe('organization of an access certificate', () => {
  it('is read from its subject', async () => {
    const withIdentifier = await certify({ name: 'Acme', organizationIdentifier: 'VATDE-123456789' });
    expect(organizationIdentifiers(withIdentifier.certificate)).to.deep.equal(['VATDE-123456789']);
    const withoutIdentifier = await certify({ name: 'Acme' });
    expect(organizationIdentifiers(withoutIdentifier.certificate)).to.deep.equal([]);
    expect(organizationIdentifiers('AAAA')).to.deep.equal([]);
  });

  const cases: [string, string[], boolean][] = [
    ['the subject', ['A'], true],
    ['the intermediary of the subject', ['B'], true],
    ['missing, if the certificate has no identifier', [], true],
    ['another one', ['C'], false],
    ['the subject and another one', ['A', 'C'], false],
    ['an unreadable identifier', [''], false],
  ];
  for (const [description, identifiers, isValid] of cases) {
    it(`${isValid ? 'may' : 'must not'} be ${description}`, () => {
      expect(belongsToVerifier({ subject: 'A', intermediary: 'B' }, identifiers)).to.equal(isValid);
    });
  }
});

const META = { vct_values: ['urn:pid:1', 'urn:pid:2'] };
const PID: RegisteredCredential = {
  format: 'dc+sd-jwt',
  meta: META,
  claims: [{ path: ['given_name'] }, { path: ['address', 'street'] }, { path: ['degrees', null, 'type'] }],
};
const MDL_META = { doctype_value: 'org.iso.18013.5.1.mDL' };
const MDL: RegisteredCredential = { format: 'mso_mdoc', meta: MDL_META, claims: [{ path: ['org.iso.18013.5.1', 'family_name'] }] };
const AGE_LIMITED: RegisteredCredential = { ...PID, claims: [{ path: ['age'], values: [18, 21] }] };
const WITHOUT_CLAIMS: RegisteredCredential = { format: PID.format, meta: META };

const queryFor = (...credentials: JsonObject[]) =>
  DcqlQuery.parse({
    credentials: credentials.map((credential, index) => ({ id: `q${index}`, format: 'dc+sd-jwt', meta: META, ...credential })),
  });
const claims = (...paths: (string | number | null)[][]) => ({ claims: paths.map((path) => ({ path })) });
const values = (path: string[], ...allowed: (string | number)[]) => ({ claims: [{ path, values: allowed }] });
const licence = { format: 'mso_mdoc', meta: MDL_META, ...claims(['org.iso.18013.5.1', 'family_name']) };

describe('claims covered by a registration certificate', () => {
  type Case = [string, readonly RegisteredCredential[] | undefined, DcqlQuery];
  const coveredCases: Case[] = [
    ['a registered query', [PID], queryFor(claims(['given_name'], ['address', 'street']))],
    ['less than is registered', [PID], queryFor(claims(['address', 'street']))],
    ['claims in another order', [PID], queryFor(claims(['address', 'street'], ['given_name']))],
    ['a wildcard as it is registered', [PID], queryFor(claims(['degrees', null, 'type']))],
    ['types in another order', [PID], queryFor({ meta: { vct_values: ['urn:pid:2', 'urn:pid:1'] } })],
    ['empty meta', [{ ...PID, meta: { ...META, a: null } }], queryFor({ meta: { a: null, ...META } })],
    ['meta in another order', [{ ...PID, meta: { a: 1, ...META } }], queryFor({ meta: { ...META, a: 1 } })],
    ['claims of two entries', [PID, { ...PID, claims: [{ path: ['age'] }] }], queryFor(claims(['given_name'], ['age']))],
    ['several queries, each by its entry', [MDL, PID], queryFor(claims(['given_name']), licence)],
    ['a query without claims', [PID], queryFor({})],
    ['a query without claims by an entry without', [WITHOUT_CLAIMS], queryFor({})],
    ['registered values', [AGE_LIMITED], queryFor(values(['age'], 18))],
    ['any value of a claim without values', [PID], queryFor(values(['given_name'], 'Ada'))],
  ];
  for (const [description, credentials, query] of coveredCases) {
    it(description, () => {
      expect(findQueryCoverage(credentials === undefined ? {} : { credentials }, query)).to.deep.equal({ covered: true });
    });
  }

  const UNREGISTERED = 'the format dc+sd-jwt with this meta is not registered';
  const gaps: [...Case, string][] = [
    ['a claim more', [PID], queryFor(claims(['given_name'], ['age'])), 'the claim ["age"] is not registered'],
    ['a parent of a registered claim', [PID], queryFor(claims(['address'])), 'the claim ["address"]'],
    ['a part of another name', [PID], queryFor(claims(['address', 'city'])), 'the claim ["address","city"]'],
    ['a position instead of a wildcard', [PID], queryFor(claims(['degrees', 0, 'type'])), 'the claim'],
    ['a position instead of a name', [{ ...PID, claims: [{ path: ['a', '0'] }] }], queryFor(claims(['a', 0])), 'the claim'],
    ['another type', [PID], queryFor({ meta: { vct_values: ['urn:other:1'] } }), UNREGISTERED],
    ['one type of two', [PID], queryFor({ meta: { vct_values: ['urn:pid:1'] } }), UNREGISTERED],
    ['a type more', [PID], queryFor({ meta: { vct_values: [...META.vct_values, 'x'] } }), UNREGISTERED],
    ['a property of meta more', [PID], queryFor({ meta: { ...META, more: true } }), UNREGISTERED],
    ['another format', [{ ...PID, format: 'mso_mdoc' }], queryFor(claims(['given_name'])), UNREGISTERED],
    ['a second credential', [PID], queryFor(claims(['given_name']), { meta: { vct_values: ['b'] } }), '"q1"'],
    ['a licence', [PID], queryFor(licence), 'the format mso_mdoc with this meta is not registered'],
    ['claims of another entry', [MDL, { ...PID, claims: [{ path: ['age'] }] }], queryFor(claims(['given_name'])), 'the claim'],
    ['anything by an empty list', [{ ...PID, claims: [] }], queryFor({}), UNREGISTERED],
    ['a claim by an absent list', [WITHOUT_CLAIMS], queryFor(claims(['given_name'])), 'the claim'],
    ['anything without credentials', undefined, queryFor({}), UNREGISTERED],
    ['anything by an empty registration', [], queryFor({}), UNREGISTERED],
    ['other values', [AGE_LIMITED], queryFor(values(['age'], 18, 16)), 'the claim ["age"]'],
    ['any value where some are registered', [AGE_LIMITED], queryFor(claims(['age'])), 'the claim ["age"]'],
    ['a value of another type', [AGE_LIMITED], queryFor(values(['age'], '18')), 'the claim ["age"]'],
  ];
  for (const [description, credentials, query, gap] of gaps) {
    it(`exclude ${description}`, () => {
      const coverage = findQueryCoverage(credentials === undefined ? {} : { credentials }, query);
      expect(coverage).to.include({ covered: false });
      expect((coverage as { gap: string }).gap).to.include(gap);
    });
  }
});
