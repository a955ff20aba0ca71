import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import {
  blockedThread,
  closedPort,
  exhaustedPool,
  expiringCertificate,
  failingBackend,
  failingJob,
  failingSignatures,
  fullHeap,
  fullSessionQuota,
  lockedList,
  longQueue,
  manyConnections,
  oldRegistration,
  oldTrustList,
  rejectedWrites,
  restarts,
  restoredBackup,
  scrapeAround,
  scrapeAroundShop,
  scrapeCrashed,
  scrapeIdle,
  scrapeMisconfigured,
  slowBackend,
  stoppedJobs,
  unexpectedErrors,
  wrongClock,
} from '../support/alert-causes.ts';
import { ALERT_RULES, alertFires, promtool, type Scrapes } from '../support/metrics.ts';

type Rule = { readonly alert: string; readonly expr: string; readonly annotations: { readonly runbook: string } };
const rules: readonly Rule[] = parse(readFileSync(ALERT_RULES, 'utf8')).groups.flatMap(
  ({ rules: groupRules }: { rules: Rule[] }) => groupRules,
);

const secret = 'a secret that nobody has';
const tryLogins = (status: number) => async (service: Parameters<Parameters<typeof scrapeAround>[0]>[0]) => {
  for (let index = 0; index < 20; index++) {
    const form = { grant_type: 'client_credentials', client_id: 'root', client_secret: secret };
    const headers = { 'X-Forwarded-For': '198.51.100.7' };
    const answer = await service.call('POST', '/oauth2/token', { form, headers });
    if (index > 15) expect(answer.status).to.equal(status);
  }
};

/** A real cause for each alert. */
const CAUSES: Readonly<Record<string, () => Promise<Scrapes>>> = {
  VidimusDown: scrapeCrashed,
  VidimusDatabaseUnusable: rejectedWrites,
  VidimusDatabaseWentBack: restoredBackup,
  VidimusUnavailableAnswers: rejectedWrites,
  VidimusUnexpectedFailures: unexpectedErrors,
  VidimusSlowAnswers: slowBackend,
  VidimusDatabaseConnectionsUsedUp: exhaustedPool,
  VidimusRequestsWait: longQueue,
  VidimusConnectionsNearLimit: manyConnections,
  VidimusThreadHeld: blockedThread,
  VidimusDrainsForLong: () => scrapeAround(async ({ service }) => service.drain()),
  VidimusKeyProviderUnusable: async () => {
    const address = `http://127.0.0.1:${await closedPort()}`;
    const vaultProvider = { type: 'vault', address, mount: 'transit', auth: { method: 'token', token: 'nobody-knows' } };
    const providers = { local: { type: 'local' }, house: vaultProvider };
    return scrapeMisconfigured({ KMS_CONFIG: JSON.stringify({ default: 'local', providers }) });
  },
  VidimusSignaturesFail: failingSignatures,
  VidimusBrokerUnusable: async () => scrapeMisconfigured({ AMQP_URL: `amqp://127.0.0.1:${await closedPort()}` }),
  VidimusIdentityProviderUnusable: async () =>
    scrapeMisconfigured({ OIDC: `http://127.0.0.1:${await closedPort()}`, OIDC_CLIENT_ID: 'vidimus', OIDC_CLIENT_SECRET: secret }),
  VidimusClockApart: wrongClock,
  VidimusListsOfOthersHeld: lockedList,
  VidimusWebhooksFail: failingBackend,
  VidimusSessionsFail: failingBackend,
  VidimusHeapNearLimit: fullHeap,
  VidimusRestarts: restarts,
  VidimusCertificateEnds: expiringCertificate,
  VidimusTrustListEnds: oldTrustList,
  VidimusRegistrationEnds: oldRegistration,
  VidimusJobFails: failingJob,
  VidimusJobsStand: stoppedJobs,
  VidimusLoginsRefused: () => scrapeAround(tryLogins(401)),
  VidimusSessionQuotaReached: fullSessionQuota,
  VidimusRateLimited: () => scrapeAround(tryLogins(429), { RATE_LIMIT_TOKEN: '5', TRUST_PROXY: '1' }),
};

describe('Prometheus alerts', () => {
  before(function () {
    if (promtool('--version') === undefined) this.skip();
  });

  it('have valid rules, which pass their own tests', () => {
    for (const [kind, file] of [
      ['check', ALERT_RULES],
      ['test', ALERT_RULES.replace('.yaml', '.test.yaml')],
    ] as const) {
      const { status, output } = promtool(kind, 'rules', file) ?? { status: 1, output: '' };
      expect(status, output).to.equal(0);
    }
  });

  it('fire for a cause that the test creates', () => {
    expect(rules.map(({ alert }) => alert).toSorted()).to.deep.equal(Object.keys(CAUSES).toSorted());
  });

  it('are silent while a service works, issues and verifies', async () => {
    let idleScrape = '';
    const scrapes = await scrapeAroundShop(async (shop) => {
      const credential = await shop.issue();
      for (let index = 0; index < 3; index++)
        expect((await shop.present(await shop.requestPresentation(), credential)).status).to.equal(200);
      idleScrape = await scrapeIdle(shop.service);
    });
    expect(alertFires('Vidimus.*', { ...scrapes, after: idleScrape })).to.equal(false);
  });

  for (const [alert, cause] of Object.entries(CAUSES)) {
    it(`fire for the cause of ${alert}`, async () => {
      const scrapes = await cause();
      expect(alertFires(alert, scrapes)).to.equal(true);
      expect(
        alertFires(alert, { ...scrapes, after: scrapes.before, hasStoppedJobs: undefined, alternatesStartTime: undefined }),
        'not by itself',
      ).to.equal(false);
    });
  }
});
