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
    what: 'a card of others where nothing is said about trust',
    reason: 'untrusted_chain',
    effect: 'needed',
    configuration: { trustAnchors: undefined },
    present: (world, asked) => world.card(asked),
  },
  {
    row: 138,
    what: 'a licence of others where nothing is said about trust',
    reason: 'untrusted_chain',
    format: 'mso_mdoc',
    effect: 'needed',
    configuration: { trustAnchors: undefined },
    present: (world, asked) => world.licence(asked),
  },
  {
    row: 138,
    what: 'a card where only the own issuer is trusted',
    reason: 'untrusted_chain',
    effect: 'needed',
    configuration: { trustAnchors: [{ keyChainId: 'signing' }] },
    present: (world, asked) => world.card(asked),
  },
  ...[CARD_QUERY, LICENCE_QUERY].map(
    (query): PresentationCase => ({
      row: 139,
      what: `another authority than was demanded, ${query.format}`,
      reason: 'untrusted_authority',
      ...(query.format === 'mso_mdoc' && { format: 'mso_mdoc' }),
      query: { trusted_authorities: [{ type: 'aki', values: ['s9tIpPmhxdiuNkHMEWNpYim8S8Y'] }] },
      present: (world, asked) => (query.format === 'mso_mdoc' ? world.licence(asked) : world.card(asked)),
    }),
  ),
];

/** Key identifier of an authority that is not in the chain of the issuer. */
const DEMANDED = 's9tIpPmhxdiuNkHMEWNpYim8S8Y';
const missing: readonly PresentationCase[] = [CARD_QUERY, LICENCE_QUERY].map((query) => ({
  row: 139,
  what: `a demanded authority that is not in the chain, ${query.format}`,
  reason: 'untrusted_authority',
  ...(query.format === 'mso_mdoc' && { format: 'mso_mdoc' }),
  query: { trusted_authorities: [{ type: 'aki', values: [DEMANDED] }] },
  async present(world, asked) {
    const middle = await certify({ name: 'Middle', by: world.authority, ca: true });
    const leaf = await certify({ name: 'Leaf', by: middle, ...DOCUMENT_SIGNER });
    const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
    return query.format === 'mso_mdoc' ? world.licence(asked, { issuer }) : world.card(asked, { issuer });
  },
}));

/** Who is on the list of every case; nobody else vouches for it. */
const LISTED = await certify({ name: 'Listed authority', ca: true });
const LISTED_LEAF = await certify({ name: 'Listed issuer', by: LISTED });
const OPERATOR = await certify({ name: 'Operator' });
const OPERATORS = await certify({ name: 'Authority of operators', ca: true });
const SERVICE = 'PID/Issuance';

let releases = 0;

/** Publishes a list that is right in every respect that `bend` does not touch. @returns its address. */
function publishList({ backend }: World, bend: ListOptions & { text?: (list: string) => string } = {}): string {
  const path = `/trust/${releases++}`;
  serveList(backend, path, bend);
  return backend.url + path;
}

function serveList(backend: World['backend'], path: string, { text, ...bend }: ListOptions & { text?: (list: string) => string }): void {
  const entities = [entity(LISTED.certificate)];
  const scheme = { LoTEType: 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList', ...bend.scheme };
  const list = trustList({ entities, signer: OPERATOR, ...bend, scheme }, now());
  const type = { 'Content-Type': 'application/jwt' };
  backend.on(path, (response) => response.writeHead(200, type).end(text?.(list) ?? list));
}

const entity = (certificate: string, type = SERVICE) => ({ name: 'Listed', services: [{ type, certificates: [certificate] }] });
const trusting = (world: World, trustList: string) => ({
  trustAnchors: [{ certificate: pem(world.authority) }, { trustList, signedBy: [pem(OPERATOR), pem(OPERATORS)] }],
});
const byListed = (world: World, asked: FetchedRequest) =>
  world.card(asked, { issuer: { key: LISTED_LEAF, chain: [LISTED_LEAF.certificate] } });

/** A card of the listed issuer, where the list is of no use. */
const unlisted = (
  row: number,
  detail: RegExp,
  cases: Readonly<Record<string, Parameters<typeof publishList>[1] | (() => Promise<Parameters<typeof publishList>[1]>)>>,
) =>
  Object.entries(cases).map(
    ([what, bend]): PresentationCase => ({
      row,
      what,
      reason: 'untrusted_chain',
      detail,
      configuration: async (world) => trusting(world, publishList(world, typeof bend === 'function' ? await bend() : bend)),
      present: byListed,
    }),
  );
const inSeconds = (seconds: number) => new Date((now() + seconds) * 1000).toISOString();

/** The control: with a list that is right, the listed issuer is trusted. */
export const listedCard = { configuration: (world: World) => trusting(world, publishList(world)), present: byListed };

const LISTS: readonly PresentationCase[] = [
  ...unlisted(94, /untrusted_chain/, {
    'an issuer who is listed as provider of wallets': { entities: [entity(LISTED.certificate, 'WalletSolution/Issuance')] },
    'an issuer who is listed as one who revokes': { entities: [entity(LISTED.certificate, 'PID/Revocation')] },
    'an issuer who is not listed': async () => ({ entities: [entity((await certify({ name: 'Other', ca: true })).certificate)] }),
  }),
  ...unlisted(134, /\/trust\/\d+: /, {
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
  ...unlisted(135, /\/trust\/\d+: /, {
    'a list that has ended': () => Promise.resolve({ scheme: { NextUpdate: inSeconds(-90) } }),
    'a list that was closed': { scheme: { NextUpdate: null } },
  }),
  ...rolledBack(),
  {
    row: 137,
    what: 'a list that cannot be reached',
    reason: 'untrusted_chain',
    detail: /127\.0\.0\.1:1\/list: .*unreachable/,
    configuration: (world) => trusting(world, 'http://127.0.0.1:1/list'),
    present: byListed,
  },
];

/** A list that named the issuer once more, after a newer one had left it out. */
function rolledBack(): readonly PresentationCase[] {
  let path = '';
  const cases: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    'an older list than the one that is known': async () => undefined,
    'an older list than one that was forgotten': (world) => world.admin('DELETE', '/cache/trust-list'),
  };
  return Object.entries(cases).map(([what, forget]) => ({
    row: 136,
    what,
    reason: 'untrusted_chain',
    async configuration(world) {
      const uri = publishList(world, { sequenceNumber: 2, entities: [entity(OPERATOR.certificate)] });
      path = new URL(uri).pathname;
      return trusting(world, uri);
    },
    async present(world, asked) {
      const other = await world.ask({ ...trusting(world, world.backend.url + path) });
      await world.answer(other, { card: [byListed(world, other)] });
      expect((await world.session(other))['status'], 'by the newer list').to.equal('failed');
      serveList(world.backend, path, { sequenceNumber: 1 });
      await forget(world);
      return byListed(world, asked);
    },
  }));
}

/** Whom a verifier trusts (RFC 5280 section 6.1, ETSI TS 119 602). */
export const trustCases: readonly PresentationCase[] = [...TRUST, ...missing, ...LISTS];
