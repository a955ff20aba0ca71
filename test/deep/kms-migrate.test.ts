import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { compactVerify, decodeJwt, decodeProtectedHeader, importX509 } from 'jose';
import { databases, type TestDatabase } from '../support/databases.ts';
import { describeWithOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { Shop } from '../support/present.ts';
import { runProcess } from '../support/programs.ts';
import { hasSoftHsm, PIN, SoftHsm } from '../support/softhsm.ts';
import { startTestService } from '../support/test-service.ts';

const KMS_CONFIG = JSON.stringify({ providers: { local: { type: 'local' }, house: { type: 'local' } } });
const MASTER_SECRET = 'a master secret for the tests 0123456789';

for (const kind of databases()) {
  describe(`key migration of a tenant to another provider on ${kind.name}`, () => {
    let database: TestDatabase;
    let shop: Shop;
    let environment: Record<string, string>;

    before(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      environment = { DATABASE_URL: database.url, KMS_CONFIG, MASTER_SECRET };
      shop = await Shop.open({}, () => startTestService(environment));
    });
    after(async () => {
      await shop?.close();
      await database?.drop();
    });

    const migrate = (more: Record<string, string> = {}, ...args: string[]) =>
      runProcess('commands/kms-migrate', args.length > 0 ? args : ['acme', 'house'], {
        ...environment,
        PUBLIC_URL: shop.service.address,
        ...more,
      });
    const chains = async () =>
      (await shop.call('GET', '/key-chain', undefined, shop.acme.token)).body as {
        id: string;
        kmsProvider: string;
        rootCertificate: string;
        previousKeys: object[];
      }[];

    it('rejects unknown names, and settings that differ from those of the service', async () => {
      const unknown = await migrate({}, 'nobody', 'house');
      expect([unknown.code, unknown.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 1 && /there is no tenant|not found|no such/i.test(text),
      );
      const provider = await migrate({}, 'acme', 'vault');
      expect(provider.stderr).to.match(/no provider "vault"/);
      const elsewhere = await migrate({ PUBLIC_URL: 'https://other.example' });
      expect(elsewhere.stderr).to.match(/PUBLIC_URL: is other.example here/);
      expect((await chains()).every(({ kmsProvider }) => kmsProvider === 'local')).to.equal(true);
    });

    it('rejects no valid request of wallets during the migration', async () => {
      const before = await chains();
      await shop.configure({ id: 'asked' });
      const held = await shop.issue('card');
      let isOver = false;
      const done: string[] = [];
      const load = (async () => {
        while (!isOver) {
          const fresh = await shop.issue('card');
          for (const credential of [held, fresh]) {
            const answer = await shop.present(await shop.requestPresentation('asked'), credential);
            done.push(`${answer.status}`);
          }
        }
      })();
      const ended = await migrate();
      isOver = true;
      await load;
      expect(ended.code, ended.stdout + ended.stderr).to.equal(0);
      expect(new Set(done)).to.deep.equal(new Set(['200']));

      const after = await chains();
      expect(after.map(({ kmsProvider }) => kmsProvider)).to.deep.equal(after.map(() => 'house'));
      expect(after.map(({ rootCertificate }) => rootCertificate)).to.deep.equal(before.map(({ rootCertificate }) => rootCertificate));
      expect(after.every(({ previousKeys }) => previousKeys.length === 1)).to.equal(true);
      const own = await shop.call('GET', '/key-chain/providers', undefined, shop.acme.token);
      expect(own.body.find((provider: { own: boolean }) => provider.own).name).to.equal('house');
    });

    it('changes nothing in the second run', async () => {
      const before = await chains();
      const ended = await migrate();
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.match(/signing: is at house/);
      expect(await chains()).to.deep.equal(before);
    });
  });
}

describeWithOpenBao('key migration of a tenant from the database to Vault and on to an HSM', (binary) => {
  let vault: OpenBao;
  let hsm: SoftHsm;
  let shop: Shop;
  let environment: Record<string, string>;
  let folder: string;

  before(async function () {
    if (!hasSoftHsm()) return this.skip();
    vault = await startOpenBao(binary);
    hsm = new SoftHsm();
    hsm.addToken('vidimus');
    folder = hsm.folder;
    const providers = {
      local: { type: 'local' },
      house: { ...(await vault.settings({ auth: await vault.appRole() })), type: 'vault' },
      hsm: {
        ...{ type: 'pkcs11', library: hsm.library, token: 'vidimus' },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the configuration
        pin: '${TEST_HSM_PIN}',
      },
    };
    environment = {
      DATABASE_URL: `sqlite:${folder}/vidimus.sqlite`,
      KMS_CONFIG: JSON.stringify({ providers }),
      TEST_HSM_PIN: PIN,
      MASTER_SECRET,
    };
    shop = await Shop.open({}, () => startTestService(environment));
  });
  after(async () => {
    await shop?.close();
    await hsm?.stop();
    await vault?.stop();
  });

  const own = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  /** The leaf must have signed it and be valid now. @returns what it says, and the SHA-256 of the leaf. */
  const signed = async (jwt: string) => {
    const { x5c = [], alg = '' } = decodeProtectedHeader(jwt);
    const leaf = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64'));
    await compactVerify(jwt, await importX509(leaf.toString(), alg));
    expect(new Date(leaf.validTo).getTime()).to.be.greaterThan(Date.now());
    return { claims: decodeJwt(jwt), leaf: leaf.fingerprint256 };
  };

  /** Wallets collect and present, and readers read what is published, until `isOver`. @returns what they saw. */
  async function use(isOver: () => boolean) {
    const held = await shop.issue('card-status');
    const seen = { presentations: 0, metadata: new Set<string>(), lists: new Set<string>() };
    do {
      const fresh = await shop.issue('card-status');
      for (const credential of [held, fresh]) {
        const asked = await shop.requestPresentation('check');
        const answer = await shop.present(asked, credential);
        expect(answer.status, answer.text).to.equal(200);
        const { status, failure } = await shop.session(asked.session);
        expect(status, JSON.stringify(failure)).to.equal('completed');
        seen.presentations++;
      }
      const metadata = await shop.service.call('GET', '/.well-known/openid-credential-issuer/acme', {
        headers: { Accept: 'application/jwt' },
      });
      seen.metadata.add((await signed(metadata.text)).leaf);
      const list = await shop.service.call('GET', '/acme/trust-list/list');
      expect(list.status, list.text).to.equal(200);
      const read = await signed(list.text);
      seen.lists.add(read.leaf);
      expect(JSON.stringify(read.claims)).to.include(shop.anchor.replaceAll(/-----[^-]+-----|\s/g, ''), 'the list names the authority');
      // Keys of all access tokens that still count are published.
      const jwks = await shop.service.call('GET', '/acme/.well-known/jwks.json');
      expect(jwks.body.keys.length).to.be.greaterThan(0);
    } while (!isOver());
    return seen;
  }

  async function move(to: string) {
    let isOver = false;
    const using = use(() => isOver);
    const ended = await runProcess('commands/kms-migrate', ['acme', to], {
      ...environment,
      PUBLIC_URL: shop.service.address,
      SOFTHSM2_CONF: process.env['SOFTHSM2_CONF'] ?? '',
    });
    // Once more around with what has become of it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    isOver = true;
    return { ended, seen: await using, chains: (await own('GET', '/key-chain')).body };
  }

  it('continues issuing, verifying and publishing during the migration', async () => {
    const info = { name: 'Acme', country: 'DE', locality: 'Bonn', streetAddress: 'Weg 1' };
    const made = await own('POST', '/trust-list', {
      id: 'list',
      entities: [{ type: 'internal', issuerKeyChainId: 'signing', revocationKeyChainId: 'status-list', info }],
    });
    expect(made.status, made.text).to.equal(201);

    const inVault = await move('house');
    expect(inVault.ended.code, inVault.ended.stdout + inVault.ended.stderr).to.equal(0);
    expect(inVault.ended.stdout).to.match(/signing: has a new key at house; the key of its authority was migrated, too/);
    expect(inVault.chains.map((chain: { kmsProvider: string }) => chain.kmsProvider)).to.deep.equal(['house', 'house', 'house', 'house']);

    const inHsm = await move('hsm');
    const told = inHsm.ended.stdout + inHsm.ended.stderr;
    expect(inHsm.ended.code, told).to.equal(1);
    expect(told).to.match(/signing: has a new key at hsm; the key of its authority cannot be exported from its provider/);
    expect(new Set(inHsm.chains.map((chain: { kmsProvider: string }) => chain.kmsProvider))).to.deep.equal(new Set(['hsm']));
    for (const { rootCertificate, id } of inHsm.chains) {
      if (id === 'signing') expect(rootCertificate).to.equal(shop.anchor);
    }
    expect(inVault.seen.presentations + inHsm.seen.presentations).to.be.greaterThan(4);
    expect(told).to.not.include(PIN);
  });

  it('lets an authority with keys at two providers renew a certificate', async () => {
    const before = (await own('GET', '/key-chain/signing')).body;
    const rotated = await own('POST', '/key-chain/signing/rotate', {});
    expect(rotated.status, rotated.text).to.equal(200);
    expect(rotated.body.kmsProvider).to.equal('hsm');
    expect(rotated.body.activeCertificate).to.not.equal(before.activeCertificate);
    await use(() => true);
  });
});
