// Pictures of any form that the browser reads become a PNG that fits: at most 512 pixels and 64 KiB.
const MOST_SIDE = 512;
const MOST_BYTES = 64 * 1024;
const MOST_FILE = 20 * 1024 * 1024;
const LEAST_SIDE = 16;
const STEP = 0.8;
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Width and height within the bound, in whole pixels, in the same proportion. */
export function fitted(width, height, most = MOST_SIDE) {
  const factor = Math.min(1, most / Math.max(width, height));
  return [Math.max(1, Math.round(width * factor)), Math.max(1, Math.round(height * factor))];
}

/** The sides to try, from the largest on: a picture that is too heavy gets smaller until it is light enough. */
export function sides(width, height) {
  const found = [];
  const first = Math.min(MOST_SIDE, Math.max(width, height));
  for (let most = first; most >= LEAST_SIDE; most = Math.floor(most * STEP)) found.push(fitted(width, height, most));
  return found.length > 0 ? found : [fitted(width, height)];
}

/** Whether bytes begin as a PNG does. */
export const isPng = (bytes) => PNG.every((byte, place) => bytes[place] === byte);

/** Bytes in base64. */
export function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/**
 * A picked file as `{ png, width, height, converted }`, with the PNG in base64. A PNG that fits stays as it is. Raises Error
 * with words for people where the file is no picture, or can not be made small enough.
 */
export async function pngOf(file) {
  if (file.size > MOST_FILE) throw new Error("The file has more than 20 MB. Choose a smaller one.");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const image = await drawn(file);
  // A drawing (SVG) without a size of its own has none here.
  const width = image.naturalWidth || MOST_SIDE;
  const height = image.naturalHeight || MOST_SIDE;
  if (isPng(bytes) && bytes.length <= MOST_BYTES && Math.max(width, height) <= MOST_SIDE) {
    return { png: base64(bytes), width, height, converted: false };
  }
  for (const [across, down] of sides(width, height)) {
    const made = await painted(image, across, down);
    if (made.length <= MOST_BYTES) return { png: base64(made), width: across, height: down, converted: true };
  }
  throw new Error("The picture can not be made small enough. Choose one with fewer details.");
}

/** The file as an image. As a data: URL, which the page's policy allows; a drawing loads nothing and runs nothing there. */
async function drawn(file) {
  const image = new Image();
  image.src = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error("The file can not be read."));
    reader.readAsDataURL(file);
  });
  try {
    await image.decode();
  } catch {
    throw new Error("This is no picture that the browser can read. Choose a PNG, JPEG, WebP, GIF or SVG.");
  }
  return image;
}

async function painted(image, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("The browser could not convert the picture.");
  return new Uint8Array(await blob.arrayBuffer());
}
