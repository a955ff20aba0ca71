import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { NameResolver } from '../../adapters/remote/name-resolver.ts';
import { RemoteError } from '../../application/ports/remote.ts';
import { NameServer } from '../support/name-server.ts';

const GET = { tenantId: 'acme', method: 'GET', timeoutMs: 1000, maxBytes: 1024 } as const;

describe('NameResolver', () => {
  const folder = mkdtempSync(join(tmpdir(), 'names-'));
  const files = { hosts: join(folder, 'hosts'), resolv: join(folder, 'resolv.conf') };
  let dns: NameServer;
  let names: NameResolver;

  beforeEach(async () => {
    writeFileSync(files.hosts, '127.0.0.1 localhost\n10.0.0.7 Backend backend.corp # ours\n::7 backend\nnonsense x\n');
    writeFileSync(files.resolv, 'nameserver 127.0.0.1\nsearch first.example second.example.\noptions ndots:2\n');
    dns = await NameServer.start((name) => {
      if (name.endsWith('silent.example')) return 'silence';
      if (name === 'both.example') return ['192.0.2.1', '2001:db8::1'];
      if (name === 'service.second.example') return ['192.0.2.2'];
      if (name === 'half.example') return ['192.0.2.3'];
      return 'nothing';
    });
    names = new NameResolver({ files, servers: [dns.address] });
  });
  afterEach(() => dns.close());
  after(() => rmSync(folder, { recursive: true }));

  const addresses = async (host: string, owner = 'acme') => (await names.resolve(host, owner)).map(({ address }) => address);
  const lookupFault = async (host: string, owner = 'acme') => {
    const error = await names.resolve(host, owner).catch((caught: unknown) => caught);
    return error instanceof RemoteError ? error.fault : error;
  };

  it('returns the addresses of both families, IPv4 first', async () => {
    expect(await names.resolve('both.example', 'acme')).to.deep.equal([
      { address: '192.0.2.1', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
    expect(await addresses('half.example')).to.deep.equal(['192.0.2.3']);
  });

  it('uses the hosts file, in any letter case and with a final dot, and makes no query', async () => {
    expect(await addresses('backend')).to.deep.equal(['10.0.0.7', '::7']);
    expect(await addresses('BACKEND.corp.')).to.deep.equal(['10.0.0.7']);
    expect(await addresses('localhost')).to.deep.equal(['127.0.0.1']);
    expect(await addresses('api.localhost')).to.deep.equal(['127.0.0.1', '::1']);
    expect(dns.queriedNames).to.deep.equal([]);
  });

  it('resolves localhost without a hosts file', async () => {
    names = new NameResolver({ files: { hosts: '/nowhere', resolv: '/nowhere' }, servers: [dns.address] });
    expect(await addresses('localhost')).to.deep.equal(['127.0.0.1', '::1']);
    expect(await addresses('both.example')).to.have.length(2);
  });

  it('tries the search domains first for names with few dots, and never for a fully qualified name', async () => {
    expect(await addresses('service')).to.deep.equal(['192.0.2.2']);
    expect(new Set(dns.queriedNames)).to.deep.equal(new Set(['service.first.example', 'service.second.example']));
    expect(await lookupFault('service.')).to.equal('unreachable');
  });

  it('caches answers, including negative ones, for a limited time', async () => {
    for (const host of ['both.example.', 'none.example.']) {
      await lookupFault(host);
      const { length } = dns.queriedNames;
      await lookupFault(host);
      await lookupFault(host, 'other');
      expect(dns.queriedNames).to.have.length(length);
    }
  });

  it('makes one query for all equal requests of a tenant', async () => {
    await Promise.all(Array.from({ length: 24 }, () => addresses('both.example.')));
    expect(dns.queriedNames).to.have.length(2);
  });

  it('waits three seconds for a silent server, and does not query it again immediately', async () => {
    const start = performance.now();
    expect(await lookupFault('a.silent.example.')).to.equal('unreachable');
    expect(performance.now() - start).to.be.within(1000, 4000);
    const repeatedAt = performance.now();
    expect(await lookupFault('a.silent.example.')).to.equal('unreachable');
    expect(performance.now() - repeatedAt).to.be.lessThan(50);
  });

  it('does not delay a tenant by the names of another tenant', async () => {
    const silentLookups = Array.from({ length: 100 }, (_, index) => lookupFault(`n${index}.silent.example.`, 'noisy'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const start = performance.now();
    expect(await addresses('both.example.', 'quiet')).to.have.length(2);
    expect(performance.now() - start).to.be.lessThan(300);
    expect(new Set(await Promise.all(silentLookups))).to.deep.equal(new Set(['unreachable']));
  });

  it('does not cache a failure of one tenant for other tenants', async () => {
    const silentLookups = Array.from({ length: 40 }, (_, index) => lookupFault(`m${index}.silent.example.`, 'noisy'));
    const lateLookup = lookupFault('both.example.', 'noisy');
    await lateLookup;
    expect(await addresses('both.example.', 'quiet')).to.have.length(2);
    await Promise.all(silentLookups);
  });

  describe('behind the HTTP client', () => {
    let server: Server;
    let port: number;
    let client: GuardedHttpClient;
    beforeEach(async () => {
      server = createServer((_, response) => response.end('here'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      ({ port } = server.address() as AddressInfo);
      client = new GuardedHttpClient({ allow: ['127.0.0.1/32'], resolve: names.resolve });
    });
    afterEach(async () => {
      await client.close();
      server.close();
    });

    it('ends a call in time when no server answers for the name', async () => {
      const start = performance.now();
      const calls = Array.from({ length: 30 }, (_, index) =>
        client.request(`http://c${index}.silent.example:${port}/`, { ...GET, timeoutMs: 200 }).catch((error) => error),
      );
      for (const error of await Promise.all(calls)) expect(error).to.include({ fault: 'timeout' });
      expect(performance.now() - start).to.be.lessThan(500);
    });

    it('does not occupy the thread pool of files and cryptography', async () => {
      const { promisify } = await import('node:util');
      const { scrypt } = await import('node:crypto');
      const calls = Array.from({ length: 30 }, (_, index) =>
        client.request(`http://d${index}.silent.example:${port}/`, GET).catch((error) => error),
      );
      const start = performance.now();
      await promisify(scrypt)('secret', 'salt', 32);
      expect(performance.now() - start).to.be.lessThan(800);
      await Promise.all(calls);
    });
  });
});
