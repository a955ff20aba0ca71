import { AccessCertificateOrder, ObtainAccessCertificate } from '../../../application/registrar/obtain-access-certificate.ts';
import {
  DeleteRegistrarConfiguration,
  GetRegistrarConfiguration,
  ReplaceRegistrarConfiguration,
  UpdateRegistrarConfiguration,
} from '../../../application/registrar/registrar-configurations.ts';
import {
  ObtainRegistrationCertificate,
  RegistrationCertificateOrder,
} from '../../../application/verification/obtain-registration-certificate.ts';
import { RegistrarConfigurationBody, RegistrarConfigurationUpdate } from '../../../domain/registrar/registrar-configuration.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, reply, route } from '../route.ts';
import {
  AccessCertificateView,
  RegistrarConfigurationView,
  RegistrationCertificateView,
  toAccessCertificateView,
  toRegistrarConfigurationView,
  toRegistrationCertificateView,
} from './registrar.view.ts';

const common = { tag: 'Registrar', surface: 'admin', access: { anyOf: ['registrar:manage'] } } as const;
/** All configurations depend on it. */
const writeAccess = { ...common, access: { ...common.access, unrestricted: true } } as const;
/** Size for anchors, or a registration certificate as large as a presentation configuration accepts. */
const BODY_LIMIT = 512 * 1024;

const CERTIFICATES = { obtainAccessCertificate: ObtainAccessCertificate, obtainRegistrationCertificate: ObtainRegistrationCertificate };

const configuration = resourceRoutes({
  ...common,
  kind: 'registrar-configuration',
  path: '/registrar/config',
  writeOverrides: { access: writeAccess.access },
  view: RegistrarConfigurationView,
  get: GetRegistrarConfiguration,
  toView: async (resource, { caller }) => toRegistrarConfigurationView(resource, await caller.tenant.tenant()),
});

/** The login at the registrar, and the certificates obtained there. */
export const registrarRoutes = families(
  configuration.get({
    operationId: 'getRegistrarConfiguration',
    summary: 'Read the login at the registrar',
    description: 'Secrets are never shown.',
    responses: { 404: 'Nothing is configured' },
  }),
  configuration.create({
    operationId: 'replaceRegistrarConfiguration',
    summary: 'Create or replace the login at the registrar',
    description:
      'The login is tested before it is stored. It is a password grant (RFC 6749 section 4.3) at the OpenID provider of ' +
      'the registrar. Below `registrarUrl` the service calls `GET /relying-parties`, `POST /access-certificates` (`rpId`, `dns`, ' +
      '`publicKey`; answered by `id` and `crt`), `POST /registration-certificates` and `GET /registration-certificates/{id}` (answered by ' +
      '`id` and `jwt`, an `rc-wrp+jwt` of ETSI TS 119 475).',
    body: RegistrarConfigurationBody,
    bodyLimit: BODY_LIMIT,
    example: {
      registrarUrl: 'https://registrar.example/api',
      oidcUrl: 'https://login.registrar.example/realms/relying-parties',
      clientId: 'vidimus',
      username: 'acme',
      password: 'the password of the account',
      registrationCertificateDefaults: {
        privacy_policy: 'https://acme.example/privacy',
        support_uri: 'https://acme.example/help',
        purpose: [{ lang: 'en', content: 'Opening an account' }],
      },
    },
    responses: { 503: 'The registrar does not answer; nothing is stored' },
    replaces: true,
    by: ReplaceRegistrarConfiguration,
  }),
  configuration.update({
    operationId: 'updateRegistrarConfiguration',
    summary: 'Change the login at the registrar',
    description:
      'Null resets an optional property. Omitted secrets are kept, unless an address or the account changes: ' +
      'then they are required. The result is tested before it is stored.',
    body: RegistrarConfigurationUpdate,
    bodyLimit: BODY_LIMIT,
    example: { password: 'the new password of the account' },
    responses: { 404: 'Nothing is configured', 503: 'The registrar does not answer; nothing is stored' },
    by: UpdateRegistrarConfiguration,
  }),
  configuration.delete({
    operationId: 'deleteRegistrarConfiguration',
    summary: 'Remove the login at the registrar',
    responses: { 404: 'Nothing is configured', 409: 'A presentation configuration gets its registration certificate there' },
    by: DeleteRegistrarConfiguration,
  }),
  family(CERTIFICATES, ({ obtainAccessCertificate, obtainRegistrationCertificate }) => [
    route({
      ...writeAccess,
      method: 'post',
      path: '/registrar/access-certificate',
      operationId: 'orderAccessCertificate',
      summary: 'Obtain an access certificate for a key chain',
      description: 'New requests to wallets are signed with it; open requests keep the previous one.',
      body: AccessCertificateOrder,
      example: { keyChainId: 'access', dns: ['verifier.acme.example'] },
      responses: {
        201: AccessCertificateView,
        409: 'No registrar is configured, or a configuration trusts the CA of the key chain',
        503: 'The registrar does not answer, or with a certificate that cannot be used',
      },
      handle: async ({ caller, body }) => reply(201, toAccessCertificateView(await obtainAccessCertificate.execute(caller, body))),
    }),
    route({
      ...common,
      method: 'post',
      path: '/registrar/registration-certificate',
      operationId: 'orderRegistrationCertificate',
      summary: 'Obtain a registration certificate',
      description:
        'Presentation configurations obtain their certificates automatically (`registrationCert`). This call issues one manually, looks ' +
        'one up, or checks one of another source.',
      body: RegistrationCertificateOrder,
      bodyLimit: BODY_LIMIT,
      example: { body: { purpose: [{ lang: 'en', content: 'Opening an account' }] }, presentationConfigurationId: 'name-check' },
      responses: {
        201: RegistrationCertificateView,
        404: 'The presentation configuration, or the certificate at the registrar, does not exist',
        409: 'No registrar is configured',
        503: 'The registrar does not answer',
      },
      async handle({ caller, body }) {
        const certificate = await obtainRegistrationCertificate.execute(caller, body);
        return reply(201, toRegistrationCertificateView(certificate));
      },
    }),
  ]),
);
