import { expect } from 'chai';
import { AddressGuard } from '../../adapters/remote/address-guard.ts';
import { parseEntry } from '../../adapters/remote/allow-list.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { RemoteError } from '../../application/ports/remote.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';

const ENVIRONMENT = {
  MASTER_SECRET: 'a master secret of decent length',
  AUTH_CLIENT_ID: 'root',
  AUTH_CLIENT_SECRET: 'the secret of the root',
};

async function faultOf(addresses: readonly string[], allow: readonly string[], url: string, tenantId = 'acme'): Promise<string> {
  const resolve = async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const client = new GuardedHttpClient({ allow, resolve });
  const limits = { timeoutMs: 150, maxBytes: 1 };
  try {
    return String((await client.request(url, { tenantId, method: 'GET', ...limits })).status);
  } catch (error) {
    return error instanceof RemoteError ? error.fault : String(error);
  }
}

describe('OUTBOUND_ALLOW', () => {
  const validEntries = [
    'backend.example',
    '*.cluster.example',
    'backend.example:8080',
    '10.0.0.0/8',
    'fd00::/8',
    '127.0.0.1:8080',
    '::1',
    '[::1]:9000',
    'acme=backend.example',
    'acme = 10.0.0.0/8',
    'a-1=[fd00::1]:443',
    'acme=*.cluster.example:8080',
  ];
  const invalidEntries = [
    '=backend.example',
    'acme=',
    'Acme Ltd=backend.example',
    'acme=beta=backend.example',
    'acme=https://backend.example',
    '10.0.0.0/33',
    'acme=10.0.0.0/33',
    'backend.example/path',
    '127.1',
    '*',
    'a b',
    'backend.example:99999',
  ];

  it('is parsed in all its forms, at the start and for calls', () => {
    for (const entry of validEntries) {
      expect(readSettings({ ...ENVIRONMENT, OUTBOUND_ALLOW: entry }).OUTBOUND_ALLOW, entry).to.deep.equal([entry]);
      expect(() => parseEntry(entry), entry).to.not.throw();
    }
  });

  it('reports all invalid entries in one message at the start', () => {
    const message = () => readSettings({ ...ENVIRONMENT, PORT: 'x', OUTBOUND_ALLOW: ['10.0.0.1', ...invalidEntries].join() });
    expect(message).to.throw(SettingsError, 'PORT: ');
    for (const entry of invalidEntries) {
      expect(message).to.throw(SettingsError, `OUTBOUND_ALLOW: "${entry}" `);
      if (!entry.endsWith(':99999')) expect(() => parseEntry(entry), entry).to.throw('OUTBOUND_ALLOW');
    }
  });

  describe('with entries for one tenant', () => {
    const guard = new AddressGuard(['acme=10.0.0.0/8', 'acme=backend.internal', 'shared.internal']);

    it('allows its addresses for that tenant only, not for another tenant or the service', () => {
      for (const url of ['https://10.1.2.3/', 'http://backend.internal/', 'http://10.1.2.3:8080/']) {
        expect(guard.forTenant('acme').refuses(url), url).to.equal(false);
        expect(guard.forTenant('beta').refuses(url), url).to.equal(true);
        expect(guard.forTenant(undefined).refuses(url), url).to.equal(true);
      }
      expect(guard.forTenant('beta').refuses('http://shared.internal/')).to.equal(false);
    });

    it('is matched against the addresses that a name resolves to', async () => {
      const allow = ['acme=127.0.0.0/8'];
      const url = 'https://name.example:1/';
      expect(await faultOf(['127.0.0.1'], allow, url, 'acme')).to.equal('unreachable');
      expect(await faultOf(['127.0.0.1'], allow, url, 'beta')).to.equal('refused_address');
    });
  });

  describe('with metadata services of cloud providers', () => {
    const broadRules = ['0.0.0.0/0', '::/0', '*.internal', '*.com', 'backend.example', 'metadata.other'];
    const literals = [
      '169.254.169.254',
      '169.254.170.2',
      '2852039166',
      '0xa9fea9fe',
      '0251.0376.0251.0376',
      '169.254.43518',
      '[::ffff:169.254.169.254]',
      '[::169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      '[64:ff9b:1::a9fe:a9fe]',
      '[64:ff9b:1:a9fe:a9:fe00::]',
      '[64:ff9b:1:0:a9:fea9:fe00:0]',
      '[2002:a9fe:a9fe::1]',
      '[2001:0:1:2:3:4:5601:5601]',
      '[fe80::5efe:a9fe:a9fe]',
      '[fe80::a9fe:a9fe]',
      '[fd00:ec2::254]',
      '[fd20:ce::254]',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
    ];

    it('rejects them in every spelling although all private addresses are allowed', async () => {
      for (const host of literals) {
        for (const scheme of ['http', 'https']) {
          expect(new AddressGuard(broadRules).forTenant('acme').refuses(`${scheme}://${host}/latest`), host).to.equal(true);
          expect(await faultOf([], broadRules, `${scheme}://${host}/latest`), host).to.equal('refused_address');
        }
      }
    });

    it('rejects them behind any name, also beside other addresses and when the name is listed', async () => {
      for (const address of ['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '168.63.129.16']) {
        for (const host of ['backend.example', 'metadata.other', 'x.internal']) {
          expect(await faultOf([address], broadRules, `http://${host}/`), host).to.equal('refused_address');
          expect(await faultOf(['127.0.0.1', address], broadRules, `http://${host}/`)).to.equal('refused_address');
        }
      }
    });

    it('rejects their names, for any addresses that these resolve to', async () => {
      for (const host of ['metadata.google.internal', 'METADATA.google.internal.', 'metadata', 'instance-data']) {
        expect(new AddressGuard(broadRules).forTenant('acme').refuses(`http://${host}/`), host).to.equal(true);
        expect(await faultOf(['127.0.0.1'], broadRules, `http://${host}:1/`), host).to.equal('refused_address');
      }
    });

    it('allows them when an entry lists exactly the address or exactly the name', async () => {
      const address = new AddressGuard(['169.254.169.254']).forTenant('acme');
      expect(address.refuses('http://169.254.169.254/latest')).to.equal(false);
      expect(address.refuses('http://169.254.170.2/')).to.equal(true);
      const name = ['metadata.google.internal'];
      expect(await faultOf(['169.254.169.254'], name, 'http://metadata.google.internal:1/')).to.not.equal('refused_address');
      expect(new AddressGuard(['acme=169.254.169.254']).forTenant('beta').refuses('http://169.254.169.254/')).to.equal(true);
    });

    it('does not change the rules for other private addresses', () => {
      const guard = new AddressGuard(broadRules).forTenant('acme');
      for (const host of ['10.0.0.1', '192.168.1.1', '[fd00::1]', '100.100.100.1', '[64:ff9b::a00:1]']) {
        expect(guard.refuses(`http://${host}/`), host).to.equal(false);
      }
    });
  });
});
