import { z } from 'zod';
import type { CreateCertificate } from '../../../application/keys/create-certificate.ts';
import type { FindCertificates } from '../../../application/keys/find-certificates.ts';
import { CertificateCreation } from '../../../application/keys/key-chain-input.ts';
import { type Route, Routes, reply, route } from '../route.ts';
import { CertificateView, toCertificateView } from './certificate.view.ts';

const common = {
  tag: 'Keys',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
} as const;

type UseCases = {
  readonly findCertificates: FindCertificates;
  readonly createCertificate: CreateCertificate;
};

/** The same keys in the vocabulary of certificates: a certificate id is a key chain id. */
export class CertificateRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor({ findCertificates, createCertificate }: UseCases) {
    super();
    this.routes = [
      route({
        ...common,
        method: 'get',
        path: '/certs',
        summary: 'List the certificates of the tenant',
        query: z.object({ keyId: z.string().max(128).optional().describe('Only certificates of this key') }),
        responses: { 200: z.array(CertificateView) },
        async handle({ caller, query }) {
          const { found, all } = await findCertificates.execute(caller, { keyId: query.keyId });
          return reply(
            200,
            found.map((chain) => toCertificateView(chain, all)),
          );
        },
      }),
      route({
        ...common,
        method: 'post',
        path: '/certs',
        summary: 'Give a key another certificate',
        description:
          'With `crt`: certificates obtained elsewhere for this key. Without: the internal authority of the key ' +
          'makes one. It is never self-signed, since wallets refuse that.',
        body: CertificateCreation,
        example: { keyId: 'signing', certUsageTypes: ['signing'], id: 'signing-2', subjectName: 'Acme PID' },
        responses: { 201: CertificateView },
        async handle({ caller, body }) {
          const { chain, all } = await createCertificate.execute(caller, body);
          return reply(201, toCertificateView(chain, all));
        },
      }),
      route({
        ...common,
        method: 'get',
        path: '/certs/:certId',
        summary: 'Read a certificate',
        params: z.object({ certId: z.string().max(128) }),
        responses: { 200: CertificateView },
        async handle({ caller, params: { certId } }) {
          const { found, all } = await findCertificates.execute(caller, { certId });
          const [view] = found.map((chain) => toCertificateView(chain, all));
          return reply(200, view);
        },
      }),
    ];
  }
}
