import type { Route } from '../routes.js';
import { fileForm, imageEditForm, imageGenerationForm, uploadForms } from './forms.js';
import { bodyParts, jsonBodies } from './json-bodies.js';
import { type NamedSchema, schemaReference } from './schemas.js';
import type { MediaType, RequestBody } from './types.js';
import {
  compatBody,
  compatForm,
  genericBody,
  vendorjBody,
  vendorkImageBody,
  vendorkTextBody,
} from './video-bodies.js';

/** What an operation takes: JSON, a form, or either. */
interface Bodies {
  readonly json: NamedSchema | null;
  readonly form: NamedSchema | null;
}

/** Every schema of a request body. */
export const requestSchemas: readonly NamedSchema[] = [
  ...jsonBodies.values(),
  ...bodyParts,
  ...uploadForms.values(),
  imageGenerationForm,
  imageEditForm,
  compatBody,
  compatForm,
  genericBody,
  vendorkTextBody,
  vendorkImageBody,
  vendorjBody,
  fileForm,
];

/**
 * The body of an operation's requests, or null where they have none.
 * @throws {Error} for a route whose check is described nowhere
 */
export function requestBodyOf(route: Route): RequestBody | null {
  const { json, form } = bodiesOf(route);
  if (json === null && form === null) return null;
  const content: Record<string, MediaType> = {};
  if (json !== null) content['application/json'] = { schema: schemaReference(json) };
  if (form !== null) content['multipart/form-data'] = { schema: schemaReference(form) };
  return { required: route.operation !== 'unimplemented', content };
}

function bodiesOf(route: Route): Bodies {
  const { schema, form, image, operation, method, path } = route;
  if (image !== null)
    return {
      json: described(route, schema === null ? undefined : jsonBodies.get(schema)),
      form: image === 'generate' ? imageGenerationForm : imageEditForm,
    };
  if (schema !== null) return { json: described(route, jsonBodies.get(schema)), form: null };
  if (form !== null) return { json: null, form: described(route, uploadForms.get(form)) };
  if (operation === 'videoCreate' || operation === 'videoAction') return videoBodies(route);
  return { json: null, form: `${method} ${path}` === 'POST /v1/files' ? fileForm : null };
}

function videoBodies({ video }: Route): Bodies {
  switch (video?.format) {
    case 'compat':
      return { json: compatBody, form: compatForm };
    case 'vendork':
      return { json: video.operation === 'text' ? vendorkTextBody : vendorkImageBody, form: null };
    case 'vendorj':
      return { json: vendorjBody, form: null };
    default:
      return { json: genericBody, form: null };
  }
}

function described({ method, path }: Route, schema: NamedSchema | undefined): NamedSchema {
  if (schema === undefined) throw new Error(`The body of ${method} ${path} is not described for OpenAPI.`);
  return schema;
}
