import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { DoctoredService, messages } from '../support/doctored-service.ts';
import { endPrograms } from '../support/program.ts';
import { aServerCertificate } from '../support/server-certificate.ts';

describe('The doctor, from outside', () => {
  let subject: DoctoredService;

  beforeEach(async () => {
    subject = await DoctoredService.make();
  });
  afterEach(async () => {
    await endPrograms();
    subject.remove();
  });

  it('is content behind a proxy that hands on everything, below a path as well', async () => {
    const address = `${await subject.startProxy()}/vidimus`;
    await subject.start({ PUBLIC_URL: address });
    const { code, findings, stdout } = await subject.examine({ PUBLIC_URL: address });
    expect(code, stdout).to.equal(0);
    expect(findings.filter(({ outcome }) => outcome === 'fault')).to.deep.equal([]);
  });

  for (const [what, change, check, words] of [
    ['takes the token away', { loses: 'authorization' }, 'proxy', 'Authorization does not arrive'],
    [
      'keeps well-known documents to itself',
      { hides: '/.well-known/' },
      'well-known',
      'does not reach the service',
    ],
    ['answers by itself', { hides: '/' }, 'address', 'is not this service'],
    ['refuses large bodies', { maxBody: 1_048_576 }, 'proxy', 'bodies of 2 MiB'],
    ['takes headers of answers away', { losesAnswer: 'x-content-type-options' }, 'proxy', 'answers lose'],
  ] as const) {
    it(`finds a proxy that ${what}`, async () => {
      const address = await subject.startProxy(change);
      await subject.start({ PUBLIC_URL: address });
      await subject.makeTenant();
      const { findings, stdout } = await subject.examine({ PUBLIC_URL: address });
      const found = findings.filter(({ outcome }) => outcome !== 'ok');
      expect(messages(found, undefined, check), stdout).to.include(words);
    });
  }

  it('finds a certificate that nobody trusts and that ends', async () => {
    const certificate = await aServerCertificate('localhost');
    const address = await subject.startProxy({ certificate });
    await subject.start({ PUBLIC_URL: address });
    const { code, findings } = await subject.examine({ PUBLIC_URL: address });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'certificate'))
      .to.include('do not trust')
      .and.to.include('ends in 0 days');
  });

  it('finds processes with another public address, and none at all', async () => {
    const address = await subject.startProxy();
    const none = await subject.examine({ PUBLIC_URL: address });
    expect(messages(none.findings, 'fault', 'address')).to.match(/cannot be reached|is not this service/);
    await subject.start();
    const { findings } = await subject.examine({ PUBLIC_URL: address });
    expect(messages(findings, 'fault', 'address')).to.include('publishes http://localhost:');
  });

  it('finds a broker and a provider of identities that do not answer', async () => {
    await subject.start();
    const dead = `127.0.0.1:${await freePort(createServer)}`;
    const { code, findings, stdout } = await subject.examine({
      AMQP_URL: `amqp://user:word-of-the-broker@${dead}`,
      OIDC: `http://${dead}/realm`,
      OIDC_CLIENT_ID: 'vidimus',
      OIDC_CLIENT_SECRET: 'word-of-the-provider',
    });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'broker')).to.include('127.0.0.1');
    expect(messages(findings, 'fault', 'identity-provider')).to.include(dead);
    expect(stdout).to.not.match(/word-of-the/);
  });
});
