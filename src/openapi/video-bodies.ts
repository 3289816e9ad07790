import { type TSchema, Type } from 'typebox';
import { name, nullable, text } from '../schema/members.js';
import { genericBodyType, vendorkBodyType } from '../video/request.js';
import { file } from './forms.js';
import type { NamedSchema } from './schemas.js';

const seconds = Type.String({
  pattern: '^(?=.*[1-9])\\d{1,9}$',
  description: 'A whole number of seconds as text, such as "4".',
});
const size = Type.String({
  pattern: '^[1-9]\\d{0,4}x[1-9]\\d{0,4}$',
  description: 'Width and height in pixels, such as "1280x720".',
});
const prompt = Type.String({ minLength: 1, maxLength: 32_000 });

/** JSON body of `POST /v1/videos`. */
export const compatBody: NamedSchema = {
  name: 'VideoRequest',
  schema: Type.Object({
    model: name,
    prompt,
    seconds: nullable(seconds),
    size: nullable(size),
    input_reference: nullable(
      Type.Union([Type.String(), Type.Object({ image_url: text })], {
        description: 'The reference image: a URL or base64.',
      }),
    ),
  }),
};

/** Form of `POST /v1/videos`. */
export const compatForm: NamedSchema = {
  name: 'VideoForm',
  schema: Type.Object({
    model: name,
    prompt,
    seconds: Type.Optional(seconds),
    size: Type.Optional(size),
    input_reference: Type.Optional(file),
  }),
};

/** Body of `POST /v1/video/generations`. */
export const genericBody: NamedSchema = { name: 'GenericVideoRequest', schema: genericBodyType };

const vendorkMembers: Readonly<Record<string, TSchema>> = vendorkBodyType.properties;
const { image: _image, image_tail: _imageTail, ...textMembers } = vendorkMembers;

/** Body of `POST /vendork/v1/videos/text2video`. */
export const vendorkTextBody: NamedSchema = {
  name: 'VendorkTextVideoRequest',
  schema: Type.Object({ ...textMembers, prompt: name }),
};

/** Body of `POST /vendork/v1/videos/image2video`. */
export const vendorkImageBody: NamedSchema = {
  name: 'VendorkImageVideoRequest',
  schema: Type.Object({ ...vendorkMembers, image: name }),
};

const images = nullable(Type.Array(Type.String({ minLength: 1 })));

const submit = Type.Object(
  {
    req_key: name,
    prompt: text,
    binary_data_base64: images,
    image_urls: images,
    seed: nullable(Type.Integer()),
    frames: nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    aspect_ratio: text,
  },
  { description: 'For the `Action` CVSync2AsyncSubmitTask; `req_key` names the model.' },
);

const query = Type.Object(
  { req_key: text, task_id: name, req_json: text },
  { description: 'For the `Action` CVSync2AsyncGetResult.' },
);

/** Body of `POST /vendorj/`, for either action. */
export const vendorjBody: NamedSchema = { name: 'VendorjRequest', schema: Type.Union([submit, query]) };
