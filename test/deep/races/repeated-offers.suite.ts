import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { offerBody, presentationBody } from '../../support/populated.ts';
import { type RacedSuite, type Racing, tally, times } from '../../support/raced-services.ts';

const CALLERS = 40;

export const repeatedOffers: RacedSuite = [
  'A request that is repeated under one Idempotency-Key',
  (racing) => {
    const ask = ({ service, token }: Racing, path: string, key: string, json: object) =>
      service.call('POST', path, { token, json, headers: { 'Idempotency-Key': key } });
    const sessions = async ({ service, token }: Racing) =>
      (await service.call('GET', '/session?limit=500', { token })).body.length as number;

    it('makes one offer', async () => {
      for (let round = 0; round < 3; round++) {
        const [key, before] = [randomUUID(), await sessions(racing())];
        const answers = await times(CALLERS, () => ask(racing(), '/issuer/offer', key, offerBody('pid')));
        expect(tally(answers)).to.deep.equal({ 201: CALLERS });
        expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
        expect(await sessions(racing())).to.equal(before + 1);
      }
    });

    it('makes one presentation request', async () => {
      const { service, token } = racing();
      const { webhook: _webhook, ...question } = presentationBody('repeated', 'signing');
      expect((await service.call('POST', '/verifier/config', { token, json: question })).status).to.equal(
        201,
      );
      const [key, before] = [randomUUID(), await sessions(racing())];
      const json = { response_type: 'uri', requestId: 'repeated' };
      const answers = await times(CALLERS, () => ask(racing(), '/verifier/offer', key, json));
      expect(tally(answers)).to.deep.equal({ 201: CALLERS });
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
      expect(await sessions(racing())).to.equal(before + 1);
    });

    it('is for one of two bodies, and for no other', async () => {
      const key = randomUUID();
      const bodies = [offerBody('pid'), { ...offerBody('pid'), expiresIn: 60 }];
      const answers = await times(CALLERS, (index) =>
        ask(racing(), '/issuer/offer', key, bodies[index % 2] ?? {}),
      );
      expect(tally(answers)).to.deep.equal({ 201: CALLERS / 2, '409 conflict': CALLERS / 2 });
    });
  },
];
