import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeRandom } from '../../adapters/system/random.ts';
import { ConsoleTickets } from '../../application/console/console-tickets.ts';
import { buildConsole } from '../support/console.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';

const MANIFEST = new URL('../../dist/adapters/http/console/built/manifest.json', import.meta.url);

describe('the console', () => {
  let service: TestService;
  const redeem = (ticket: string) => service.call('POST', '/console/login', { json: { ticket } });

  before(async () => {
    buildConsole();
    service = await startTestService();
  });
  after(() => service.close());

  it('is a page that runs only scripts of this service', async () => {
    const { status, text, headers } = await service.call('GET', '/console');
    expect(status).to.equal(200);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).to.include("script-src 'self';").and.to.include("frame-ancestors 'none'");
    expect(policy).not.to.match(/unsafe|https?:|\*/);
    expect(text).not.to.match(/<script(?![^>]*src=)|<style|style=|\son[a-z]+=/);
    for (const [, address = ''] of text.matchAll(/(?:src|href)="([^"]+)"/g)) {
      const file = await service.call('GET', address);
      expect(file.status, address).to.equal(200);
      expect(file.headers.get('x-content-type-options')).to.equal('nosniff');
    }
  });

  it('serves its files and nothing else', async () => {
    const { script } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as { script: string };
    const { headers } = await service.call('GET', `/console/${script}`);
    expect(headers.get('cache-control')).to.include('immutable');
    for (const name of ['manifest.json', '..%2f..%2f..%2fpackage.json', `${script}.map`, 'x.js', '%00.js'])
      expect((await service.call('GET', `/console/${name}`)).status, name).to.equal(404);
  });

  it('accepts the ticket of the start once', async () => {
    const ticket = service.service.container.get(ConsoleTickets).issue();
    const responses = await Promise.all(Array.from({ length: 24 }, () => redeem(ticket)));
    const accepted = responses.filter(({ status }) => status === 200);
    expect(accepted.length).to.equal(1);
    expect(responses.filter(({ status }) => status === 401).length).to.equal(23);
    const { access_token: token } = accepted[0]?.body ?? {};
    expect(accepted[0]?.headers.get('cache-control')).to.equal('no-store');
    expect((await service.call('GET', '/tenant', { token })).status).to.equal(200);
  });

  it('rejects unknown and expired tickets', async () => {
    for (const ticket of ['x', ROOT.secret, '']) expect((await redeem(ticket)).status, ticket).to.equal(ticket === '' ? 400 : 401);
    let now = Date.now();
    const tickets = new ConsoleTickets({ now: () => new Date(now) }, new NodeRandom());
    const ticket = tickets.issue();
    now += 30 * 60_000;
    expect(tickets.redeem(ticket)).to.equal(false);
  });

  it('stores a limited number of tickets', () => {
    const tickets = new ConsoleTickets({ now: () => new Date() }, new NodeRandom());
    const all = Array.from({ length: 40 }, () => tickets.issue());
    expect(all.filter((ticket) => tickets.redeem(ticket)).length).to.equal(16);
  });
});
