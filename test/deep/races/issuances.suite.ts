import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { created, credentialBody, offerBody } from '../../support/populated.ts';
import { type RacedSuite, tally, times } from '../../support/raced-services.ts';

const CALLERS = 30;

export const issuances: RacedSuite = [
  'What one session issues of a configuration',
  (racing) => {
    const configured = async (id: string, changes: object) => {
      const { service, token } = racing();
      await created(service, token, '/issuer/credentials', { ...credentialBody(id, 'signing'), ...changes });
    };

    it('is limited, however many ask at the same time', async () => {
      const { service, token, wallet } = racing();
      await configured('few', { maxIssuances: 3 });
      await configured('other', {});
      const both = { ...offerBody('few'), credentialConfigurationIds: ['few', 'other'] };
      const { uri } = await created(service, token, '/issuer/offer', both);
      const accessToken = await wallet.accessToken(uri);
      // What it issues of another configuration does not count.
      for (let issued = 0; issued < 4; issued++)
        expect((await wallet.request(accessToken, 'other')).status).to.equal(200);
      const answers = await times(CALLERS, () => wallet.request(accessToken, 'few'));
      expect(tally(answers)).to.deep.equal({ 200: 3, '400 credential_request_denied': CALLERS - 3 });
      expect((await wallet.request(accessToken, 'other')).status).to.equal(200);
    });

    it('is one active set: all but the last are revoked', async () => {
      const { service, token, wallet } = racing();
      await configured('single', { oneActiveSet: true });
      const { uri, session } = await created(service, token, '/issuer/offer', offerBody('single'));
      const accessToken = await wallet.accessToken(uri);
      const answers = await times(8, () => wallet.request(accessToken, 'single'));
      expect(tally(answers)).to.deep.equal({ 200: 8 });
      const statuses = await Promise.all(
        answers.map(({ body }) => statusOf(body.credentials[0].credential as string)),
      );
      expect(statuses.sort()).to.deep.equal([0, 1, 1, 1, 1, 1, 1, 1]);
      const entries = (await service.call('GET', `/audit-log?limit=100`, { token })).body as {
        target: string;
        actor: unknown;
      }[];
      const told = entries.filter(({ target }) => target === session);
      expect(told, 'one entry for each').to.have.length(7);
    });

    async function statusOf(credential: string): Promise<number> {
      const { status } = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      const { idx, uri } = status.status_list;
      const { text } = await racing().service.call('GET', uri);
      const { status_list } = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
      const bytes = inflateSync(Buffer.from(status_list.lst, 'base64url'));
      const { bits } = status_list;
      return ((bytes[Math.floor((idx * bits) / 8)] ?? 0) >> ((idx * bits) % 8)) & (2 ** bits - 1);
    }
  },
];
