import { certificateRoutes } from '../../adapters/http/keys/certificate.routes.ts';
import { keyRoutes } from '../../adapters/http/keys/key.routes.ts';
import { keyChainRoutes } from '../../adapters/http/keys/key-chain.routes.ts';
import { CreateCertificate } from '../../application/keys/create-certificate.ts';
import { DeleteKey } from '../../application/keys/delete-key.ts';
import { FindCertificates } from '../../application/keys/find-certificates.ts';
import {
  CreateKeyChain,
  DeleteKeyChain,
  GetKeyChain,
  ListKeyChains,
  UpdateKeyChain,
} from '../../application/keys/key-chains.ts';
import { ListKeyProviders } from '../../application/keys/list-key-providers.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { RequestCertificate } from '../../application/keys/request-certificate.ts';
import { RotateKeyChain } from '../../application/keys/rotate-key-chain.ts';
import type { Feature } from './feature.ts';

/** Keys of tenants, in both of the vocabularies that are published. */
export const keys: Feature = {
  classes: [
    ...[ListKeyChains, GetKeyChain, CreateKeyChain, UpdateKeyChain, DeleteKeyChain, ListKeyProviders],
    ...[RotateKeyChain, RenewKeyChains, RequestCertificate, FindCertificates, CreateCertificate, DeleteKey],
  ],
  administered: [keyChainRoutes, certificateRoutes, keyRoutes],
};
