import { expect } from 'chai';
import type { FetchedRequest } from '../../support/present.ts';
import { now } from '../../support/raw-wallet.ts';
import { changePart, flipFirstByte } from '../../support/sd-jwt-maker.ts';
import { certify, DOCUMENT_SIGNER, pem, WEB_SERVER } from '../../support/test-certificates.ts';
import { type ListOptions, trustList } from '../../support/trust-list.ts';
import { CARD_QUERY, LICENCE_QUERY, type PresentationCase, type World } from './world.ts';

const TRUST: readonly PresentationCase[] = [
  {
    row: 138,
    title: 'a card of another issuer without configured trust anchors',
    reason: 'untrusted_chain',
    effect: 'needed',
    configuration: { trustAnchors: undefined },
    present: (world, request) => world.card(request),
  },
  {
    row: 138,
    title: 'a licence of another issuer without configured trust anchors',
    reason: 'untrusted_chain',
    format: 'mso_mdoc',
    effect: 'needed',
    configuration: { trustAnchors: undefined },
    present: (world, request) => world.licence(request),
  },
  {
    row: 138,
    title: 'a card of another issuer when only the issuer of the tenant is trusted',
    reason: 'untrusted_chain',
    effect: 'needed',
    configuration: { trustAnchors: [{ keyChainId: 'signing' }] },
    present: (world, request) => world.card(request),
  },
  ...[CARD_QUERY, LICENCE_QUERY].map(
    (query): PresentationCase => ({
      row: 139,
      title: `another authority than the requested one, ${query.format}`,
      reason: 'untrusted_authority',
      ...(query.format === 'mso_mdoc' && { format: 'mso_mdoc' }),
      query: { trusted_authorities: [{ type: 'aki', values: ['s9tIpPmhxdiuNkHMEWNpYim8S8Y'] }] },
      present: (world, request) => (query.format === 'mso_mdoc' ? world.licence(request) : world.card(request)),
    }),
  ),
];

/** Key identifier of a CA that is not in the chain of the issuer. */
const DEMANDED = 's9tIpPmhxdiuNkHMEWNpYim8S8Y';
const missing: readonly PresentationCase[] = [CARD_QUERY, LICENCE_QUERY].map((query) => ({
  row: 139,
  title: `a requested authority that is not in the chain, ${query.format}`,
  reason: 'untrusted_authority',
  ...(query.format === 'mso_mdoc' && { format: 'mso_mdoc' }),
  query: { trusted_authorities: [{ type: 'aki', values: [DEMANDED] }] },
  async present(world, request) {
    const intermediate = await certify({ name: 'Middle', by: world.authority, ca: true });
    const leaf = await certify({ name: 'Leaf', by: intermediate, ...DOCUMENT_SIGNER });
    const issuer = { key: leaf, chain: [leaf.certificate, intermediate.certificate] };
    return query.format === 'mso_mdoc' ? world.licence(request, { issuer }) : world.card(request, { issuer });
  },
}));

/** The issuer on the list of every case, which is trusted by this list only. */
const LISTED = await certify({ name: 'Listed authority', ca: true });
const LISTED_LEAF = await certify({ name: 'Listed issuer', by: LISTED });
const OPERATOR = await certify({ name: 'Operator' });
const OPERATORS = await certify({ name: 'Authority of operators', ca: true });
const SERVICE = 'PID/Issuance';

let releases = 0;

/** Publishes a list that is valid except for `changes`. @returns its address. */
function publishList({ backend }: World, changes: ListOptions & { text?: (list: string) => string } = {}): string {
  const path = `/trust/${releases++}`;
  serveList(backend, path, changes);
  return backend.url + path;
}

function serveList(backend: World['backend'], path: string, { text, ...changes }: ListOptions & { text?: (list: string) => string }): void {
  const entities = [entity(LISTED.certificate)];
  const scheme = { LoTEType: 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList', ...changes.scheme };
  const list = trustList({ entities, signer: OPERATOR, ...changes, scheme }, now());
  const type = { 'Content-Type': 'application/jwt' };
  backend.on(path, (response) => response.writeHead(200, type).end(text?.(list) ?? list));
}

const entity = (certificate: string, type = SERVICE) => ({ name: 'Listed', services: [{ type, certificates: [certificate] }] });
const withTrustList = (world: World, trustList: string) => ({
  trustAnchors: [{ certificate: pem(world.authority) }, { trustList, signedBy: [pem(OPERATOR), pem(OPERATORS)] }],
});
const cardOfListed = (world: World, request: FetchedRequest) =>
  world.card(request, { issuer: { key: LISTED_LEAF, chain: [LISTED_LEAF.certificate] } });

/** A card of the listed issuer with an unusable list. */
const withUnusableList = (
  row: number,
  detail: RegExp,
  cases: Readonly<Record<string, Parameters<typeof publishList>[1] | (() => Promise<Parameters<typeof publishList>[1]>)>>,
) =>
  Object.entries(cases).map(
    ([title, changes]): PresentationCase => ({
      row,
      title,
      reason: 'untrusted_chain',
      detail,
      configuration: async (world) => withTrustList(world, publishList(world, typeof changes === 'function' ? await changes() : changes)),
      present: cardOfListed,
    }),
  );
const inSeconds = (seconds: number) => new Date((now() + seconds) * 1000).toISOString();

/** The control: the listed issuer is trusted with a valid list. */
export const listedCard = { configuration: (world: World) => withTrustList(world, publishList(world)), present: cardOfListed };

const LISTS: readonly PresentationCase[] = [
  ...withUnusableList(94, /untrusted_chain/, {
    'an issuer that is listed as a wallet provider': { entities: [entity(LISTED.certificate, 'WalletSolution/Issuance')] },
    'an issuer that is listed for revocations': { entities: [entity(LISTED.certificate, 'PID/Revocation')] },
    'an issuer that is not listed': async () => ({ entities: [entity((await certify({ name: 'Other', ca: true })).certificate)] }),
  }),
  ...withUnusableList(134, /\/trust\/\d+: /, {
    'a list whose signature is broken': { text: changePart('.', 2, flipFirstByte) },
    'a list that was changed': {
      text: changePart('.', 1, (payload) => {
        const text = Buffer.from(payload, 'base64url').toString().replace('Scheme Operator', 'Scheme operator');
        return Buffer.from(text).toString('base64url');
      }),
    },
    'a list of another signer': async () => ({ signer: await certify({ name: 'Operator' }) }),
    'a list that a web server of the operator signed': async () => ({
      signer: await certify({ name: 'Web server', by: OPERATORS, purposes: [WEB_SERVER] }),
    }),
    'a list that is not signed': { header: { alg: 'none' } },
  }),
  ...withUnusableList(135, /\/trust\/\d+: /, {
    'an expired list': () => Promise.resolve({ scheme: { NextUpdate: inSeconds(-90) } }),
    'a list that was closed': { scheme: { NextUpdate: null } },
  }),
  ...rollbackCases(),
  {
    row: 137,
    title: 'a list that cannot be reached',
    reason: 'untrusted_chain',
    detail: /127\.0\.0\.1:1\/list: .*unreachable/,
    configuration: (world) => withTrustList(world, 'http://127.0.0.1:1/list'),
    present: cardOfListed,
  },
];

/** An older list with the issuer, which is served again after a newer list without the issuer. */
function rollbackCases(): readonly PresentationCase[] {
  let path = '';
  const cases: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    'an older list than the one that is known': async () => undefined,
    'an older list than one that was forgotten': (world) => world.admin('DELETE', '/cache/trust-list'),
  };
  return Object.entries(cases).map(([title, clearCache]) => ({
    row: 136,
    title,
    reason: 'untrusted_chain',
    async configuration(world) {
      const uri = publishList(world, { sequenceNumber: 2, entities: [entity(OPERATOR.certificate)] });
      path = new URL(uri).pathname;
      return withTrustList(world, uri);
    },
    async present(world, request) {
      const otherRequest = await world.ask({ ...withTrustList(world, world.backend.url + path) });
      await world.answer(otherRequest, { card: [cardOfListed(world, otherRequest)] });
      expect((await world.session(otherRequest))['status'], 'the newer list counts').to.equal('failed');
      serveList(world.backend, path, { sequenceNumber: 1 });
      await clearCache(world);
      return cardOfListed(world, request);
    },
  }));
}

/** Untrusted issuers (RFC 5280 section 6.1, ETSI TS 119 602). */
export const trustCases: readonly PresentationCase[] = [...TRUST, ...missing, ...LISTS];
