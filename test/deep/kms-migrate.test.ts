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
      const connection = await kind.open();
      if (connection === undefined) return this.skip();
      database = connection;
      environment = { DATABASE_URL: database.url, KMS_CONFIG, MASTER_SECRET };
      shop = await Shop.open({}, () => startTestService(environment));
    });
    after(async () => {
      await shop?.close();
      await database?.drop();
    });

    const migrate = (extraSettings: Record<string, string> = {}, ...args: string[]) =>
      runProcess('commands/kms-migrate', args.length > 0 ? args : ['acme', 'house'], {
        ...environment,
        PUBLIC_URL: shop.service.address,
        ...extraSettings,
      });
    const chains = async () =>
      (await shop.call('GET', '/key-chain', undefined, shop.acme.token)).body as {
        id: string;
        kmsProvider: string;
        rootCertificate: string;
        previousKeys: object[];
      }[];

    it('rejects unknown names, and settings that differ from those of the service', async () => {
      const unknownNamesRun = await migrate({}, 'nobody', 'house');
      expect([unknownNamesRun.code, unknownNamesRun.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 1 && /there is no tenant|not found|no such/i.test(text),
      );
      const provider = await migrate({}, 'acme', 'vault');
      expect(provider.stderr).to.match(/no provider "vault"/);
      const otherUrlRun = await migrate({ PUBLIC_URL: 'https://other.example' });
      expect(otherUrlRun.stderr).to.match(/PUBLIC_URL: is other.example here/);
      expect((await chains()).every(({ kmsProvider }) => kmsProvider === 'local')).to.equal(true);
    });

    it('rejects no valid request of wallets during the migration', async () => {
      const chainsBefore = await chains();
      await shop.configure({ id: 'asked' });
      const heldCredential = await shop.issue('card');
      let isStopped = false;
      const completedSteps: string[] = [];
      const load = (async () => {
        while (!isStopped) {
          const newCredential = await shop.issue('card');
          for (const credential of [heldCredential, newCredential]) {
            const answer = await shop.present(await shop.requestPresentation('asked'), credential);
            completedSteps.push(`${answer.status}`);
          }
        }
      })();
      const migrationRun = await migrate();
      isStopped = true;
      await load;
      expect(migrationRun.code, migrationRun.stdout + migrationRun.stderr).to.equal(0);
      expect(new Set(completedSteps)).to.deep.equal(new Set(['200']));

      const chainsAfter = await chains();
      expect(chainsAfter.map(({ kmsProvider }) => kmsProvider)).to.deep.equal(chainsAfter.map(() => 'house'));
      expect(chainsAfter.map(({ rootCertificate }) => rootCertificate)).to.deep.equal(
        chainsBefore.map(({ rootCertificate }) => rootCertificate),
      );
      expect(chainsAfter.every(({ previousKeys }) => previousKeys.length === 1)).to.equal(true);
      const providersResponse = await shop.call('GET', '/key-chain/providers', undefined, shop.acme.token);
      expect(providersResponse.body.find((provider: { own: boolean }) => provider.own).name).to.equal('house');
    });

    it('changes nothing in the second run', async () => {
      const chainsBefore = await chains();
      const migrationRun = await migrate();
      expect(migrationRun.code, migrationRun.stderr).to.equal(0);
      expect(migrationRun.stdout).to.match(/signing: is at house/);
      expect(await chains()).to.deep.equal(chainsBefore);
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

  const callAsIssuer = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  /** Verifies the signature and the validity of the leaf. @returns the payload, and the SHA-256 of the leaf. */
  const verifySignature = async (jwt: string) => {
    const { x5c = [], alg = '' } = decodeProtectedHeader(jwt);
    const leaf = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64'));
    await compactVerify(jwt, await importX509(leaf.toString(), alg));
    expect(new Date(leaf.validTo).getTime()).to.be.greaterThan(Date.now());
    return { claims: decodeJwt(jwt), leaf: leaf.fingerprint256 };
  };

  /** Issues, presents and reads published documents until `isStopped`. @returns the observations. */
  async function useContinuously(isStopped: () => boolean) {
    const heldCredential = await shop.issue('card-status');
    const observed = { presentations: 0, metadata: new Set<string>(), lists: new Set<string>() };
    do {
      const newCredential = await shop.issue('card-status');
      for (const credential of [heldCredential, newCredential]) {
        const request = await shop.requestPresentation('check');
        const answer = await shop.present(request, credential);
        expect(answer.status, answer.text).to.equal(200);
        const { status, failure } = await shop.session(request.session);
        expect(status, JSON.stringify(failure)).to.equal('completed');
        observed.presentations++;
      }
      const metadata = await shop.service.call('GET', '/.well-known/openid-credential-issuer/acme', {
        headers: { Accept: 'application/jwt' },
      });
      observed.metadata.add((await verifySignature(metadata.text)).leaf);
      const list = await shop.service.call('GET', '/acme/trust-list/list');
      expect(list.status, list.text).to.equal(200);
      const listPayload = await verifySignature(list.text);
      observed.lists.add(listPayload.leaf);
      expect(JSON.stringify(listPayload.claims)).to.include(
        shop.anchor.replaceAll(/-----[^-]+-----|\s/g, ''),
        'the list names the authority',
      );
      // The keys of all valid access tokens are published.
      const jwks = await shop.service.call('GET', '/acme/.well-known/jwks.json');
      expect(jwks.body.keys.length).to.be.greaterThan(0);
    } while (!isStopped());
    return observed;
  }

  async function migrateTo(targetProvider: string) {
    let isStopped = false;
    const usage = useContinuously(() => isStopped);
    const migrationRun = await runProcess('commands/kms-migrate', ['acme', targetProvider], {
      ...environment,
      PUBLIC_URL: shop.service.address,
      SOFTHSM2_CONF: process.env['SOFTHSM2_CONF'] ?? '',
    });
    // One more iteration after the migration.
    await new Promise((resolve) => setTimeout(resolve, 200));
    isStopped = true;
    return { ended: migrationRun, seen: await usage, chains: (await callAsIssuer('GET', '/key-chain')).body };
  }

  it('continues issuing, verifying and publishing during the migration', async () => {
    const info = { name: 'Acme', country: 'DE', locality: 'Bonn', streetAddress: 'Weg 1' };
    const trustListResponse = await callAsIssuer('POST', '/trust-list', {
      id: 'list',
      entities: [{ type: 'internal', issuerKeyChainId: 'signing', revocationKeyChainId: 'status-list', info }],
    });
    expect(trustListResponse.status, trustListResponse.text).to.equal(201);

    const vaultRun = await migrateTo('house');
    expect(vaultRun.ended.code, vaultRun.ended.stdout + vaultRun.ended.stderr).to.equal(0);
    expect(vaultRun.ended.stdout).to.match(/signing: has a new key at house; the key of its authority was migrated, too/);
    expect(vaultRun.chains.map((chain: { kmsProvider: string }) => chain.kmsProvider)).to.deep.equal(['house', 'house', 'house', 'house']);

    const hsmRun = await migrateTo('hsm');
    const output = hsmRun.ended.stdout + hsmRun.ended.stderr;
    expect(hsmRun.ended.code, output).to.equal(1);
    expect(output).to.match(/signing: has a new key at hsm; the key of its authority cannot be exported from its provider/);
    expect(new Set(hsmRun.chains.map((chain: { kmsProvider: string }) => chain.kmsProvider))).to.deep.equal(new Set(['hsm']));
    for (const { rootCertificate, id } of hsmRun.chains) {
      if (id === 'signing') expect(rootCertificate).to.equal(shop.anchor);
    }
    expect(vaultRun.seen.presentations + hsmRun.seen.presentations).to.be.greaterThan(4);
    expect(output).to.not.include(PIN);
  });

  it('lets a CA with keys at two providers renew a certificate', async () => {
    const chainBefore = (await callAsIssuer('GET', '/key-chain/signing')).body;
    const rotation = await callAsIssuer('POST', '/key-chain/signing/rotate', {});
    expect(rotation.status, rotation.text).to.equal(200);
    expect(rotation.body.kmsProvider).to.equal('hsm');
    expect(rotation.body.activeCertificate).to.not.equal(chainBefore.activeCertificate);
    await useContinuously(() => true);
  });
});
