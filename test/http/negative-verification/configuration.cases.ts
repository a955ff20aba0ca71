import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { type HolderKey, newKey, now } from '../../support/raw-wallet.ts';
import { TestRegistrar } from '../../support/registrar.ts';
import { certify, pem } from '../../support/test-certificates.ts';
import { CARD_QUERY, type ConfigurationCase, LICENCE_QUERY } from './world.ts';

const query = (...credentials: object[]) => ({ dcql_query: { credentials } });
const card = (changes: object) => query({ ...CARD_QUERY, ...changes });
const licence = (path: unknown) => query({ ...LICENCE_QUERY, claims: [{ path }] });
const path = (value: unknown) => card({ claims: [{ path: value }] });
const values = (...list: unknown[]) => card({ claims: [{ path: ['name'], values: list }] });
const sets = (...options: string[][]) => ({ dcql_query: { credentials: [CARD_QUERY], credential_sets: [{ options }] } });
const transaction = (entry: object, credential = CARD_QUERY as object) => ({ ...query(credential), transaction_data: [entry] });
const ENTRY = { type: 'urn:example:payment', credential_ids: ['card'] };
const CLAIM = { id: 'n', path: ['name'] };

const casesOf = (row: number, bodies: Readonly<Record<string, object>>): readonly ConfigurationCase[] =>
  Object.entries(bodies).map(([title, body]) => ({ row, title, body }));

/** The change of a registration certificate, and the claims that a request needs for it. */
const REGISTRATIONS: Readonly<Record<string, readonly [() => Record<string, unknown>, readonly string[]]>> = {
  'a registration certificate that has expired': [() => ({ exp: now() - 90 }), ['name']],
  'a registration certificate that does not cover the query': [() => ({}), ['name', 'age']],
};

/** Configurations and requests that are rejected before a wallet gets them (OpenID4VP 1.0 sections 5 and 6). */
export const configurationCases: readonly ConfigurationCase[] = [
  ...casesOf(1, {
    'a query without credentials': { dcql_query: {} },
    'a query with no credentials': query(),
    'no query': { dcql_query: undefined },
  }),
  ...casesOf(2, { 'two credential queries of one id': query(CARD_QUERY, CARD_QUERY) }),
  ...casesOf(3, {
    'an id with a dot': card({ id: 'my.card' }),
    'an id with a space': card({ id: 'my card' }),
    'an id beyond ASCII': card({ id: 'kärtchen' }),
    'an empty id': card({ id: '' }),
    'a number as id': card({ id: 5 }),
  }),
  ...casesOf(4, {
    'no meta': card({ meta: undefined }),
    'no vct_values': card({ meta: {} }),
    'empty vct_values': card({ meta: { vct_values: [] } }),
    'no doctype_value': query({ ...LICENCE_QUERY, meta: {} }),
  }),
  ...casesOf(5, {
    'claim_sets without claims': card({ claims: undefined, claim_sets: [['n']] }),
    'claim_sets of an unknown claim': card({ claims: [CLAIM], claim_sets: [['other']] }),
    'claim_sets of claims without ids': card({ claims: [CLAIM, { path: ['age'] }], claim_sets: [['n']] }),
  }),
  ...casesOf(6, { 'an option of an unknown query': sets(['unknown']), 'an empty option': sets([]), 'no option': sets() }),
  ...casesOf(7, { 'one path twice': card({ claims: [{ path: ['name'] }, { path: ['name'] }] }) }),
  ...casesOf(8, {
    'an empty path': path([]),
    'a negative index': path(['name', -1]),
    'a boolean in a path': path(['name', true]),
    'a fraction in a path': path(['name', 1.5]),
    'text as path': path('name'),
  }),
  ...casesOf(9, {
    'an mdoc path of one part': licence(['family_name']),
    'an mdoc path of three parts': licence(['org.iso.18013.5.1', 'driving_privileges', 'codes']),
    'an mdoc path with null': licence(['org.iso.18013.5.1', null]),
    'an mdoc path with an index': licence(['org.iso.18013.5.1', 0]),
  }),
  ...casesOf(10, {
    'no values': values(),
    'null as value': values(null),
    'an object as value': values({}),
    'an array as value': values([]),
    'a fraction as value': values(1.5),
  }),
  ...casesOf(11, {
    'no trusted authorities': card({ trusted_authorities: [] }),
    'a trusted authority without type': card({ trusted_authorities: [{ values: ['x'] }] }),
    'a trusted authority of an unknown type': card({ trusted_authorities: [{ type: 'urn:unknown', values: ['x'] }] }),
    'a trusted authority without values': card({ trusted_authorities: [{ type: 'aki', values: [] }] }),
  }),
  ...casesOf(12, {
    'the format jwt_vc_json': card({ format: 'jwt_vc_json', meta: { type_values: [['x']] } }),
    'the format of earlier drafts': card({ format: 'vc+sd-jwt' }),
  }),
  ...casesOf(13, {
    'transaction data without type': transaction({ credential_ids: ['card'] }),
    'transaction data for no credential': transaction({ ...ENTRY, credential_ids: [] }),
    'transaction data for an unknown credential': transaction({ ...ENTRY, credential_ids: ['other'] }),
  }),
  {
    row: 13,
    title: 'a request with transaction data for an unknown credential',
    async run(world) {
      const requestId = await world.configured({});
      const transaction_data = [{ ...ENTRY, credential_ids: ['other'] }];
      return world.admin('POST', '/verifier/offer', { response_type: 'uri', requestId, transaction_data });
    },
  },
  ...casesOf(14, {
    'transaction data for a credential without binding': transaction(ENTRY, { ...CARD_QUERY, require_cryptographic_holder_binding: false }),
  }),
  ...casesOf(15, {
    'transaction data of a type that no mdoc element confirms': transaction({ ...ENTRY, credential_ids: ['licence'] }, LICENCE_QUERY),
  }),
  {
    row: 16,
    title: 'an access certificate that names itself as its issuer',
    async run(world) {
      const { activeCertificate } = (await world.admin('GET', '/key-chain/access')).body;
      const jwk = new X509Certificate(activeCertificate).publicKey.export({ format: 'jwk' });
      // The key itself cannot sign here; only the name is compared.
      const key = { ...newKey(), jwk: jwk as HolderKey['jwk'] };
      const crt = pem(await certify({ name: 'Self', key }));
      const id = 'self-signed';
      const body = { id, keyId: 'access', certUsageTypes: ['access'], crt };
      const creation = await world.admin('POST', '/certs', body);
      expect(creation.status, creation.text).to.equal(201);
      const configuration = { id: 'refused-16', dcql_query: { credentials: [CARD_QUERY] } };
      return world.admin('POST', '/verifier/config', { ...configuration, accessKeyChainId: id });
    },
  },
  ...Object.entries(REGISTRATIONS).map(
    ([title, [change, request]]): ConfigurationCase => ({
      row: 18,
      title,
      async run(world) {
        const registrar = await TestRegistrar.start();
        try {
          registrar.payload = change();
          const { id: _, ...registered } = CARD_QUERY;
          const jwt = registrar.certificate([registered]);
          const dcql_query = { credentials: [{ ...CARD_QUERY, claims: request.map((name) => ({ path: [name] })) }] };
          return await world.admin('POST', '/verifier/config', { id: 'refused-18', dcql_query, registrationCert: { jwt } });
        } finally {
          await registrar.close();
        }
      },
    }),
  ),
  {
    row: 17,
    title: 'a request under an access certificate that has expired',
    async run(world) {
      const requestId = await world.configured({ accessKeyChainId: 'access' });
      const token = await world.client();
      const json = { response_type: 'uri', requestId };
      return world.later(5 * 366 * 86_400, async () => world.service.call('POST', '/verifier/offer', { token: await token(), json }));
    },
  },
  ...casesOf(19, {
    'an attachment without format': { attached: [{ data: {} }] },
    'an attachment without data': { attached: [{ format: 'jwt' }] },
    'an attachment for no credential': { attached: [{ format: 'jwt', data: {}, credential_ids: [] }] },
    'an attachment for an unknown credential': { attached: [{ format: 'jwt', data: {}, credential_ids: ['other'] }] },
  }),
  {
    row: 20,
    title: 'a request by a client that may use another configuration only',
    status: 403,
    async run(world) {
      const [requestId, allowed] = [await world.configured({}), await world.configured({ lifeTime: 60 })];
      const token = await world.client({ allowedPresentationConfigs: [allowed] });
      const json = { response_type: 'uri', requestId };
      return world.service.call('POST', '/verifier/offer', { token: await token(), json });
    },
  },
];
