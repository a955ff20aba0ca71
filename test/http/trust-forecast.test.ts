import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { copyIdOf } from '../../application/trust-lists/list-copies.ts';
import { pinSigners, thumbprintOf } from '../../application/trust-lists/verify-trust-list.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { addClient, type PopulatedTenant, populate } from '../support/populated.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

type Item = {
  readonly kind: string;
  readonly id: string;
  readonly endsAt: string;
  readonly renews: boolean;
  readonly affects: { readonly issuance: readonly string[]; readonly presentation: readonly string[] };
  readonly advice: string;
};

const LIST = 'https://lists.example/list?key=secret';

describe('The trust forecast of a tenant', () => {
  let service: TestService;
  let acme: PopulatedTenant;
  let other: PopulatedTenant;
  let anchor: CertifiedKey;
  let operator: CertifiedKey;
  const ends = new Date(Date.now() + 9 * 86_400_000);

  before(async () => {
    service = await startTestService();
    [acme, other] = [await populate(service, 'acme-corp'), await populate(service, 'bravo-corp')];
    [anchor, operator] = [await certify({ name: 'Issuer', ca: true }), await certify({ name: 'Operator' })];
    const trustAnchors = [{ certificate: pem(anchor) }, { trustList: LIST, signedBy: [pem(operator)], follow: { territories: ['DE'] } }];
    const query = { credentials: [{ id: 'c', format: 'dc+sd-jwt', meta: { vct_values: ['urn:x:1'] } }] };
    for (const id of ['first', 'second']) {
      const json = { id, dcql_query: query, trustAnchors };
      expect((await service.call('POST', '/verifier/config', { token: acme.token, json })).status).to.equal(201);
    }
    const list = { sequenceNumber: 1, issuedAt: new Date(), nextUpdate: ends, entities: [] };
    const copy = { list, documentHash: 'd', contentHash: 'c', checkedAt: new Date() };
    const kept = service.service.container.get(Store).lists('acme-corp' as TenantId);
    await kept.keepCopy(copyIdOf(LIST, pinSigners([pem(operator)])), { uri: LIST }, copy);
    await kept.keepCopy('national', { uri: 'https://de.example/list', via: LIST }, copy);
    await kept.keepCopy('unnamed', { uri: 'https://nobody.example/list' }, copy);
  });
  after(() => service.close());

  const forecast = async (token = acme.token, query = '') => {
    const answer = await service.call('GET', `/trust/forecast${query}`, { token });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body as Item[];
  };
  const of = (items: readonly Item[], kind: string) => items.filter((item) => item.kind === kind);

  it('contains every key chain that signs the requests of a configuration', async () => {
    const call = (path: string, json: object) => service.call('POST', path, { token: other.token, json });
    expect((await call('/key-chain', { id: 'further', usageType: 'access' })).status).to.equal(201);
    const dcql_query = { credentials: [{ id: 'c', format: 'dc+sd-jwt', meta: { vct_values: ['urn:x:1'] } }] };
    const several = { dcApiRequest: 'multisigned', furtherAccessKeyChainIds: ['further'] };
    const written = await call('/verifier/config', { id: 'several', dcql_query, ...several });
    expect(written.status, written.text).to.equal(201);
    const further = of(await forecast(other.token), 'key-chain').find(({ id }) => id === 'further');
    expect(further?.affects.presentation).to.deep.equal(['several']);
  });

  it('is shown without the queries of addresses, and not to clients that are restricted to some configurations', async () => {
    for (const path of ['/trust/lists', '/trust/forecast', '/cache/stats']) {
      const answer = await service.call('GET', path, { token: acme.token });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.text, path).to.not.include('secret');
    }
    const rights = { roles: ['presentation:manage'], allowedPresentationConfigs: ['first'] };
    const restricted = await addClient({ service, token: acme.token }, 'restricted', rights);
    for (const path of ['/trust/lists', '/trust/forecast']) {
      expect((await service.call('GET', path, { token: restricted })).status, path).to.equal(403);
    }
  });

  it('is sorted by date, each entry once with everything that fails then and the required action', async () => {
    const items = await forecast();
    const times = items.map(({ endsAt }) => endsAt);
    expect(times).to.deep.equal(times.toSorted());
    const lists = of(items, 'followed-list');
    expect(lists.map(({ id }) => id).sort()).to.deep.equal([copyIdOf(LIST, pinSigners([pem(operator)])), 'national'].sort());
    for (const list of lists) {
      expect(list.affects).to.deep.equal({ issuance: [], presentation: ['first', 'second'] });
      expect([list.endsAt, list.renews]).to.deep.equal([ends.toISOString(), true]);
    }
    const [trusted] = of(items, 'anchor');
    expect(trusted?.id).to.equal(thumbprintOf(anchor.certificate));
    expect(trusted?.affects.presentation).to.deep.equal(['first', 'second']);
    const signers = of(items, 'list-signer').find(({ id }) => id === thumbprintOf(operator.certificate));
    expect([signers?.affects.presentation, signers?.renews]).to.deep.equal([['first', 'second'], false]);
    expect(of(items, 'published-list').map(({ id, renews }) => [id, renews])).to.deep.equal([[acme.ids.trustList, true]]);
    const keys = of(items, 'key-chain').find(({ id }) => id === acme.ids.keyChain);
    expect(keys?.affects).to.deep.equal({ issuance: [acme.ids.credential], presentation: [] });
    const authority = of(items, 'authority').find(({ id }) => id === acme.ids.keyChain);
    expect(authority?.affects.presentation).to.include(acme.ids.presentation);
    for (const { advice } of items) expect(advice).to.match(/\w/);
    expect(JSON.stringify(items)).not.to.include('secret');
  });

  it('is returned in pages and up to a time', async () => {
    const all = await forecast();
    const seen: Item[] = [];
    let path: string | undefined = '/trust/forecast?limit=3';
    while (path !== undefined) {
      const answer = await service.call('GET', path, { token: acme.token });
      expect(answer.body).to.have.length.within(1, 3);
      seen.push(...answer.body);
      const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
      path = next && new URL(next).pathname + new URL(next).search;
    }
    expect(seen).to.deep.equal(all);
    const soon = await forecast(acme.token, `?until=${ends.toISOString()}`);
    expect(soon).to.deep.equal(all.filter(({ endsAt }) => endsAt <= ends.toISOString()));
    const day = new Date(Date.parse(ends.toISOString().slice(0, 10)));
    const dateOf = (shift: number) => new Date(day.getTime() + shift * 86_400_000).toISOString().slice(0, 10);
    const endOf = (date: string) => `${date}T23:59:59.999Z`;
    for (const date of [dateOf(0), dateOf(-1)])
      expect(await forecast(acme.token, `?until=${date}`), 'to the end of that day').to.deep.equal(
        all.filter(({ endsAt }) => endsAt <= endOf(date)),
      );
    for (const wrong of ['soon', '2026-13-01', '2026-12-01T00:00']) {
      const { body } = await service.call('GET', `/trust/forecast?until=${wrong}`, { token: acme.token });
      expect(body.errors[0], wrong).to.deep.equal({
        path: 'query.until',
        message: 'expected a date such as 2026-12-01, or a time such as 2026-12-01T12:00:00Z',
      });
    }
    for (const bad of ['limit=0', 'limit=501', 'cursor=x', 'until=soon'])
      expect((await service.call('GET', `/trust/forecast?${bad}`, { token: acme.token })).status, bad).to.equal(400);
  });

  it('is searched by kind and by the names of an entry and its dependents', async () => {
    const all = await forecast();
    const found = async (query: string) => {
      const answer = await service.call('GET', `/trust/forecast?limit=2&${query}`, { token: acme.token });
      expect(answer.status, answer.text).to.equal(200);
      const rest = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1] ?? '';
      return { items: answer.body as Item[], count: Number(answer.headers.get('x-total-count')), rest };
    };
    expect((await found('')).count).to.equal(all.length);
    const lists = await found('kind=followed-list');
    expect([lists.items, lists.count]).to.deep.equal([of(all, 'followed-list'), 2]);
    const resting = all.filter(({ affects }) => affects.presentation.includes('second'));
    const named = await found('q=SECOND');
    expect([named.items, named.count]).to.deep.equal([resting.slice(0, 2), resting.length]);
    expect(new URL(named.rest).searchParams.get('q'), 'the next page is found alike').to.equal('SECOND');
    const both = await found('kind=anchor&q=second');
    expect(both.items.map(({ id }) => id)).to.deep.equal([thumbprintOf(anchor.certificate)]);
    expect(await found('q=nothing-is-called-so')).to.deep.equal({ items: [], count: 0, rest: '' });
    const asking = await addClient(acme, 'finds', { roles: ['presentation:manage'] });
    const own = await service.call('GET', `/trust/forecast?q=${acme.ids.credential}`, { token: asking });
    expect([own.body, own.headers.get('x-total-count')], 'nothing is found by what is not shown').to.deep.equal([[], '0']);
    for (const bad of ['kind=other', 'q=', `q=${'x'.repeat(201)}`])
      expect((await service.call('GET', `/trust/forecast?${bad}`, { token: acme.token })).status, bad).to.equal(400);
  });

  it('is returned to each role for its configurations', async () => {
    const asking = await forecast(await addClient(acme, 'asks', { roles: ['presentation:manage'] }));
    expect(of(asking, 'anchor')).to.have.length(1);
    expect(asking.flatMap(({ affects }) => affects.issuance)).to.deep.equal([]);
    const issuing = await forecast(await addClient(acme, 'issues', { roles: ['issuance:manage'] }));
    expect(issuing.flatMap(({ affects }) => affects.presentation)).to.deep.equal([]);
    expect([of(issuing, 'anchor'), of(issuing, 'followed-list')]).to.deep.equal([[], []]);
    expect(of(issuing, 'key-chain').map(({ id }) => id)).to.include(acme.ids.keyChain);
  });

  it('names the property for the next signer if the caller may write it', async () => {
    const provider = await certify({ name: 'Wallets' });
    const json = {
      display: [{ name: 'Acme', locale: 'en' }],
      walletProviderTrustLists: ['https://lists.example/wallets'],
      // The operator signs both kinds of lists.
      walletProviderTrustListCertificates: [pem(provider), pem(operator)],
    };
    const written = await service.call('POST', '/issuer/config', { token: acme.token, json });
    expect(written.status, written.text).to.equal(201);
    const adviceOf = (items: readonly Item[], { certificate }: CertifiedKey) =>
      of(items, 'list-signer').find(({ id }) => id === thumbprintOf(certificate))?.advice ?? '';
    const all = await forecast();
    expect(adviceOf(all, provider)).to.include('walletProviderTrustListCertificates').and.not.include('signedBy');
    expect(adviceOf(all, operator)).to.include('walletProviderTrustListCertificates').and.include('signedBy');
    const asking = await forecast(await addClient(acme, 'asks-signers', { roles: ['presentation:manage'] }));
    expect(adviceOf(asking, operator)).to.include('signedBy').and.not.include('walletProvider');
    expect(adviceOf(asking, provider)).to.equal('');
  });

  it('is inaccessible to another tenant', async () => {
    const theirs = JSON.stringify(await forecast(other.token));
    for (const own of [thumbprintOf(anchor.certificate), 'lists.example/list', 'first', acme.ids.keyChain])
      expect(theirs).not.to.include(own);
  });

  it('contains a list whose signer waits for confirmation, with the required action', async () => {
    const kept = service.service.container.get(Store).lists('acme-corp' as TenantId);
    const id = copyIdOf(LIST, pinSigners([pem(operator)]));
    const signer = anchor.certificate;
    await kept.recordProblem(id, { uri: LIST }, { fault: 'untrusted_signer', reason: 'x', signer }, new Date());
    const held = of(await forecast(), 'followed-list').find((item) => item.id === id);
    expect(held?.renews).to.equal(false);
    expect(held?.advice).to.include('/trust/lists/{id}/confirm-signer');
  });
});
