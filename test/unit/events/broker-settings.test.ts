import { expect } from 'chai';
import { readSettings } from '../../../config/settings.ts';

const GOOD = {
  MASTER_SECRET: 'a master secret for the tests 0123456789',
  AUTH_CLIENT_ID: 'root',
  AUTH_CLIENT_SECRET: 'root-secret-for-the-tests',
};

describe('The settings of the broker', () => {
  it('take an authority of its own for TLS', () => {
    const settings = readSettings({ ...GOOD, AMQP_URL: 'amqps://u:p@mq.example', AMQP_CA: 'ca.pem' });
    expect(settings).to.include({ AMQP_CA: 'ca.pem' });
  });

  for (const url of [undefined, 'amqp://u:s3cret@mq.example']) {
    it(`refuse one where there is no TLS: ${url === undefined ? 'no broker' : 'plain text'}`, () => {
      const given = { ...GOOD, ...(url === undefined ? {} : { AMQP_URL: url }), AMQP_CA: 'ca.pem' };
      expect(() => readSettings(given))
        .to.throw(/AMQP_CA: means nothing without an AMQP_URL that begins with amqps:/)
        .and.have.property('message')
        .that.does.not.include('s3cret');
    });
  }
});
